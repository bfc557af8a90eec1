import { once } from 'node:events'
import { connect, createServer } from 'node:net'

import { expect, test } from 'vitest'

import { listen } from '../../../../test/support/listen.ts'
import type { Problem } from '../../src/dev/load/problem.ts'
import { createWaitingServer } from '../../src/dev/page/waiting-page.ts'

/** A server whose connections are accepted without reading, as `dev` does. */
async function open(findProblem: () => Problem | undefined) {
  const waiting = createWaitingServer(findProblem)
  const server = createServer({ pauseOnConnect: true }, waiting.accept)
  const port = await listen(server)
  return {
    waiting,
    port,
    get: async (path: string, headers: Record<string, string> = {}) => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers })
      return { status: response.status, headers: response.headers, text: await response.text() }
    },
    [Symbol.asyncDispose]: async () => void server.close(),
  }
}

test.each([
  ['en', /<html lang="en">[^]*<title>Loading your agent…<\/title>[^]*role="status"/],
  ['ja', /<html lang="ja">[^]*エージェントを読み込んでいます…/],
])(
  '[DV1323] while the first version is loaded, each page says so, and other requests receive 503: %s',
  async (language, shown) => {
    await using server = await open(() => undefined)
    const page = await server.get('/?chat=a', { accept: 'text/html', 'accept-language': language })
    expect([page.status, page.text]).toEqual([503, expect.stringMatching(shown)])
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    const other = await server.get('/chats')
    expect([other.status, other.headers.get('retry-after')]).toEqual([503, '1'])
    expect(JSON.parse(other.text)).toMatchObject({
      error: { code: 'unavailable', message: 'The agent is being loaded.' },
    })
  },
)

test('[DV1323] a page that waits shows the error of the version that could not be loaded', async () => {
  let problem: Problem | undefined
  await using server = await open(() => problem)
  const headers = { accept: 'text/html' }
  expect((await server.get('/', headers)).text).toContain('Loading your agent…')
  problem = { message: 'a <b>.', codeFrame: '> 2 | <i>' }
  expect((await server.get('/', headers)).text).toMatch(
    /role="alert">a &lt;b&gt;\.<[^]*&gt; 2 \| &lt;i&gt;/,
  )
})

test('[DV1323] connections that a browser has opened in advance are closed when a version works', async () => {
  await using server = await open(() => undefined)
  const socket = connect(server.port, '127.0.0.1')
  await once(socket, 'connect')
  // A later connection was accepted after this one.
  await server.get('/')
  const closed = once(socket, 'close')
  server.waiting.release()
  expect(await closed).toBeDefined()
})
