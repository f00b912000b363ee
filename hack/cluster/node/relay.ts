import { connect, type Server, type Socket } from 'node:net';

// Runs in the node's network. It is given sockets that listen on the outside, and passes each connection on to the same port
// of the node. It ends with the process that started it, and with the node.

process.on('message', (port: number, server: Server) => {
  server.on('connection', (outside: Socket) => pass(outside, port));
  process.send?.(port);
});
process.on('disconnect', () => process.exit());
process.send?.('ready');

function pass(outside: Socket, port: number): void {
  const inside = connect(port, '127.0.0.1');
  for (const [from, to] of [
    [outside, inside],
    [inside, outside],
  ] as const) {
    from.setNoDelay(true);
    from.pipe(to);
    // A reset on one side is one on the other side; nobody is there to hear of it.
    from.on('error', () => to.destroy());
    from.on('close', () => to.destroy());
  }
}
