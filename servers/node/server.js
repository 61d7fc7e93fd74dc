// One page over HTTP/1.1 or HTTP/2, with or without TLS, by one process or by several of node's cluster.
// Its settings are in the JSON file that is named.
'use strict';

const cluster = require('node:cluster');
const fs = require('node:fs');
const http = require('node:http');
const http2 = require('node:http2');
const https = require('node:https');
const { SSL_OP_NO_TICKET } = require('node:crypto').constants;

const settings = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const full =
  '<!doctype html>\n<title>weigh</title>\n<p>weigh: it works. ' +
  'A page of 129 bytes, from memory, the same for whoever asks for it now.\n';
const text = settings.bytes < full.length ? 'weigh: it works' : full;
const page = Buffer.from(text.padEnd(settings.bytes, '.'));

// What https needs besides what http needs.
function secure(tls) {
  const one = tls.version !== 'any';
  return {
    cert: fs.readFileSync(tls.chain),
    key: fs.readFileSync(tls.key),
    minVersion: one ? `TLSv${tls.version}` : 'TLSv1.2',
    maxVersion: one ? `TLSv${tls.version}` : 'TLSv1.3',
    secureOptions: tls.tickets ? 0 : SSL_OP_NO_TICKET,
    ...(tls.authority && {
      requestCert: true,
      rejectUnauthorized: true,
      ca: fs.readFileSync(tls.authority),
    }),
  };
}

function create(answer) {
  if (settings.http2) {
    const options = { settings: { maxConcurrentStreams: settings.http2 } };
    if (!settings.tls) return http2.createServer(options, answer);
    return http2.createSecureServer({ ...options, ...secure(settings.tls), allowHTTP1: true }, answer);
  }
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
    // HTTP/2 has no such field.
    if (!settings.keepalive && request.httpVersionMajor === 1) head.Connection = 'close';
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
