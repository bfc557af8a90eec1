import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'

/** A fetch whose responses arrive one byte at a time. */
export function bytewise(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init)
    const split = new TransformStream<Uint8Array, Uint8Array>({
      transform(piece, controller) {
        for (let index = 0; index < piece.length; index += 1) {
          controller.enqueue(piece.slice(index, index + 1))
        }
      },
    })
    return new Response(response.body?.pipeThrough(split) ?? null, response)
  }
}

/** Posts JSON with every byte in its own HTTP chunk. Returns the whole response, with its headers. */
export async function postBytewise(url: string, body: unknown): Promise<string> {
  const { hostname, port, pathname } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.write(
    `POST ${pathname} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nConnection: close\r\n` +
      'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
  )
  for (const byte of Buffer.from(JSON.stringify(body))) {
    socket.write(Buffer.concat([Buffer.from('1\r\n'), Buffer.of(byte), Buffer.from('\r\n')]))
  }
  socket.write('0\r\n\r\n')
  return text(socket)
}
