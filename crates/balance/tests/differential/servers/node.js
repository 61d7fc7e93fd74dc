const fs = require('node:fs');
const log = (line) => fs.appendFileSync('FOLDER/requests', line + '\n');
const server = require('node:http').createServer((request, response) => {
  log(request.method + ' ' + request.url);
  request.on('error', () => {});
  request.on('end', () => response.end('yes'));
  request.resume();
});
server.on('checkContinue', (request, response) => {
  response.writeContinue();
  server.emit('request', request, response);
});
server.on('clientError', (error, socket) => {
  if (error.code !== 'ECONNRESET') log('malformed: ' + error.code);
  socket.destroy();
});
server.listen(PORT, 'IP');
