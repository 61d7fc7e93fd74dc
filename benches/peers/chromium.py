"""Opens a page in Chromium that uses WebSocket and EventSource, and says whether it saw all: chromium.py ADDRESS."""

import http.server
import os
import subprocess
import sys
import tempfile
import threading
import time

# What the page saw becomes a path.
PAGE = """<script>
let messages = 0, events = 0, said = '';
const socket = new WebSocket('ws://AT/ws/echo'), tell = () => fetch('/' + [messages, events, said].join('-'));
socket.onopen = () => socket.send('ß'.repeat(70000));
socket.onmessage = m => { if (m.data == 'ß'.repeat(70000) && ++messages < 20) socket.send(m.data); else socket.close(4001); };
socket.onclose = e => { said = e.code; if (events == 20) tell(); };
const source = new EventSource('http://AT/events/20?format=sse&every=5ms');
source.onmessage = () => events++;
source.addEventListener('end', () => { source.close(); if (said) tell(); });
</script>"""
ALL = "/20-20-4001"
saw = []


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path.count("-") == 2:
            saw.append(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(PAGE.replace("AT", sys.argv[1]).encode())

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
threading.Thread(target=server.serve_forever, daemon=True).start()
with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
    # The page comes from another port than the events.
    browser = subprocess.Popen(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-web-security",
                                f"--user-data-dir={profile}", f"http://127.0.0.1:{server.server_port}/"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    end = time.time() + 50
    while not saw and time.time() < end:
        time.sleep(0.1)
    os.killpg(browser.pid, 15)
    browser.wait()
sys.exit(0 if saw == [ALL] else f"saw {saw}")
