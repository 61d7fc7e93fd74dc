// One page over HTTP or HTTPS, by one process or by several of node's cluster. Its settings are in the
// JSON file that is named.
'use strict';

const cluster = require('node:cluster');
const fs = require('node:fs');
const http = require('node:http');
const https = require('node:https');
const { SSL_OP_NO_TICKET } = require('node:crypto').constants;

const settings = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const page = Buffer.from(
  '<!doctype html>\n<title>weigh</title>\n<p>weigh: it works. ' +
    'A page of 129 bytes, from memory, the same for whoever asks for it now.\n'
);

// What https needs besides what http needs.
function secure(tls) {
  const one = tls.version !== 'any';
  return {
    cert: fs.readFileSync(tls.chain),
    key: fs.readFileSync(tls.key),
    minVersion: one ? `TLSv${tls.version}` : 'TLSv1.2',
    maxVersion: one ? `TLSv${tls.version}` : 'TLSv1.3',
    secureOptions: tls.tickets ? 0 : SSL_OP_NO_TICKET,
  };
}

function create(answer) {
  return settings.tls ? https.createServer(secure(settings.tls), answer) : http.createServer(answer);
}

function serve() {
  const server = create((request, response) => {
    if (request.url !== '/') {
      response.writeHead(404, { 'Content-Length': 0 });
      response.end();
      return;
    }
    const head = { 'Content-Type': 'text/html', 'Content-Length': page.length };
    if (!settings.keepalive) head.Connection = 'close';
    response.writeHead(200, head);
    response.end(page);
  });
  server.keepAliveTimeout = settings.keepalive_timeout_s * 1000;
  server.maxRequestsPerSocket = settings.keepalive_requests;
  server.on('error', (error) => {
    console.error(error.message);
    process.exit(1);
  });
  server.listen({ host: settings.ip, port: settings.port, backlog: settings.listen_backlog });
  process.on('SIGTERM', () => {
    // Running requests may finish; idle connections are closed with the listening socket.
    server.close(() => process.exit(0));
    setTimeout(() => process.exit(0), 1000).unref();
  });
}

if (settings.processes > 1 && cluster.isPrimary) {
  cluster.schedulingPolicy = settings.shared_socket ? cluster.SCHED_NONE : cluster.SCHED_RR;
  let stopping = false;
  for (let n = 0; n < settings.processes; n += 1) cluster.fork();
  cluster.on('exit', (worker, code) => {
    if (!stopping) {
      console.error(`process ${worker.process.pid} ended with status ${code}`);
      process.exit(1);
    }
    if (Object.keys(cluster.workers).length === 0) process.exit(0);
  });
  process.on('SIGTERM', () => {
    stopping = true;
    for (const worker of Object.values(cluster.workers)) worker.process.kill('SIGTERM');
  });
} else {
  serve();
}
