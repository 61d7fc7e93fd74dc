// A WebSocket server that echoes (serve PORT), or a client of one (call URL), by ws.
const { WebSocket, WebSocketServer } = require('ws'), [, , what, at] = process.argv;
if (what == 'serve') {
  new WebSocketServer({ host: '127.0.0.1', port: +at, perMessageDeflate: true })
    .on('connection', c => c.on('message', (m, binary) => c.send(m, { binary })));
} else {
  const sent = ['', 'hello', 'ß'.repeat(70000), Buffer.alloc(1 << 20, 7)], c = new WebSocket(at);
  let next = 0, pongs = 0;
  c.on('error', e => { throw e; }).on('pong', () => pongs++).on('open', () => { c.ping(); c.send(sent[0]); });
  c.on('message', (m, binary) => {
    if (!m.equals(Buffer.from(sent[next])) || binary != (typeof sent[next] != 'string')) throw 'altered';
    if (++next < sent.length) c.send(sent[next], { compress: next != 1 }); else c.close(4001, 'bye');
  }).on('close', code => process.exit(code == 4001 && pongs == 1 && next == 4 ? 0 : 1));
}
