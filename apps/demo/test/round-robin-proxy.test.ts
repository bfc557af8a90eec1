import { createServer, type RequestListener } from 'node:http'
import type { Socket } from 'node:net'

import { expect, test } from 'vitest'

import { listen } from '../../../test/support/listen.ts'
import { createRoundRobinProxy } from '../src/cluster/round-robin-proxy.ts'

async function serve(listener: RequestListener): Promise<{ url: string } & AsyncDisposable> {
  const server = createServer(listener)
  const url = `http://127.0.0.1:${await listen(server)}`
  return {
    url,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

test('[DM201] a request is not lost on a connection that its instance closes because it was idle', async () => {
  const used = new WeakSet<Socket>()
  await using instance = await serve(({ socket }, response) => {
    if (used.has(socket)) return void socket.destroy()
    used.add(socket)
    response.end('Here.')
  })
  const { listener } = createRoundRobinProxy(() => [{ name: 'A', url: instance.url }])
  await using proxy = await serve(listener)
  for (let request = 0; request < 2; request += 1) {
    const response = await fetch(proxy.url)
    expect([response.status, await response.text()]).toEqual([200, 'Here.'])
  }
})
