"""A WebSocket server that echoes (serve PORT), or a client of one (call URL), by websockets."""

import asyncio, sys
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
async def echo(c):
    async for message in c: await c.send(message)
async def serves(): await (await serve(echo, '127.0.0.1', int(sys.argv[2]))).serve_forever()
async def calls():
    async with connect(sys.argv[2]) as c:
        for message in ['', 'hello', 'ß' * 70000, bytes(900000), ['a' * 300, 'ß', '', 'end']]:
            await c.send(message)
            assert await c.recv() == (''.join(message) if isinstance(message, list) else message)
        await (await c.ping())
        await c.close(4001, 'bye')
        assert c.close_code == 4001, c.close_code
asyncio.run(serves() if sys.argv[1] == 'serve' else calls())
