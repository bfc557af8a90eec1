import { afterAll, beforeAll, expect, test } from 'vitest'

import {
  createDatabase,
  type TestDatabase,
} from '../../../packages/adk-stream-protocol/test/support/postgres.ts'
import { longTest } from '../../../test/support/long-test.ts'
import { bundleProgram } from '../../../test/support/bundle-program.ts'
import { type Cluster, startCluster } from '../src/cluster/start-cluster.ts'
import { builtPage } from '../../../test/support/built-page.ts'

let database: TestDatabase
let cluster: Cluster
const changes: string[] = []

beforeAll(async () => {
  await builtPage()
  const program = await bundleProgram(new URL('../src/server/main.ts', import.meta.url))
  database = await createDatabase()
  cluster = await startCluster(
    { PORT: '0', DATABASE_URL: database.url },
    { program: [program], onChange: (sentence) => changes.push(sentence) },
  )
})

afterAll(async () => {
  await cluster?.close()
  await database?.[Symbol.asyncDispose]()
})

longTest(
  '[DM200] [DM201] a payment that one instance requested is decided at the other and made once',
  async () => {
    const browser = await openBrowser()
    const requested = await browser.send('chat-1', 'Send $30 to Alice')
    const approvalId = readApprovalId(requested.body)
    const decided = await browser.decide(approvalId)
    expect(decided).toMatchObject({ status: 200 })
    expect(decided.instance).not.toBe(requested.instance)
    await expect
      .poll(() => browser.text('/chats/chat-1/messages'))
      .toContain('"wallet_balance":970')
    expect(await database.run('SELECT amount_cents FROM demo_payments')).toEqual([
      { amount_cents: 3000 },
    ])
  },
)

test('[DM201] if an instance is killed, the other one responds, and the first is started again', async () => {
  const browser = await openBrowser()
  const { pids } = cluster
  const before = pids().get('A') ?? 0
  process.kill(before, 'SIGKILL')
  await expect.poll(() => pids().get('A')).not.toBe(before)
  expect((await browser.send('chat-2', 'What is the weather in Tokyo?')).body).toContain('[DONE]')
  await expect
    .poll(() => changes.filter((change) => change.startsWith('Instance A runs')).length)
    .toBe(2)
  const instances = [await browser.get('/studio'), await browser.get('/studio')]
  expect(new Set(instances.map(({ instance }) => instance))).toEqual(new Set(['A', 'B']))
})

interface Reply {
  readonly status: number
  readonly body: string
  readonly instance: string | null
}

/** A client that keeps the cookie of its first response. */
async function openBrowser() {
  const { headers } = await fetch(cluster.url)
  const cookie = headers.get('set-cookie')?.split(';', 1)[0] ?? ''
  const request = async (path: string, init: RequestInit = {}): Promise<Reply> => {
    const response = await fetch(cluster.url + path, {
      ...init,
      headers: { cookie, origin: cluster.url, 'content-type': 'application/json' },
    })
    return {
      status: response.status,
      body: await response.text(),
      instance: response.headers.get('x-studio-instance'),
    }
  }
  const post = (path: string, body: unknown): Promise<Reply> =>
    request(path, { method: 'POST', body: JSON.stringify(body) })
  return {
    get: request,
    text: async (path: string) => (await request(path)).body,
    send: (id: string, text: string) =>
      post('/stream', {
        id,
        trigger: 'submit-message',
        messages: [{ id: `${id}-1`, role: 'user', parts: [{ type: 'text', text }] }],
      }),
    decide: (approvalId: string) => post(`/approvals/${approvalId}`, { approved: true }),
  }
}

function readApprovalId(stream: string): string {
  return /"approvalId":"([^"]+)"/.exec(stream)?.[1] ?? ''
}
