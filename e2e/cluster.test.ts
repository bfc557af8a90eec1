import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'

import { firstOf, scriptResponder, type Emulator, startEmulator } from 'gemini-emulator'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, vi } from 'vitest'
import { z } from 'zod'

import { type Cluster, startCluster } from '../apps/demo/src/cluster/start-cluster.ts'
import { demoModel } from '../apps/demo/src/model/demo-model.ts'
import { type TemporaryDirectory, temporaryDirectory } from '../test/support/temporary-directory.ts'
import { builtPage } from '../test/support/built-page.ts'
import { longTest } from '../test/support/long-test.ts'
import { bundleProgram } from '../test/support/bundle-program.ts'
import { takeTurns } from '../test/support/take-turns.ts'
import { decide, waitForOutcome, RAN_ONCE } from './support/approvals.ts'
import { TestContexts } from './support/browser-contexts.ts'
import { chatPage } from './support/chat-page.ts'
import { buildStockPage, serveStockPages, STOCK_VERSIONS } from './support/stock-page.ts'

const Pending = z.object({ approvals: z.array(z.object({ id: z.string() })) })
const History = z.object({ history: z.array(z.object({ type: z.string() })) })

let directory: TemporaryDirectory
let emulator: Emulator
let cluster: Cluster
const contexts = new TestContexts()

beforeAll(async () => {
  await builtPage()
  directory = await temporaryDirectory()
  // PostgreSQL runs as another user if the tests run as root. Only the owner may read the demo's data folder.
  await chmod(directory.path, 0o755)
  await mkdir(join(directory.path, 'data'), { mode: 0o700 })
  const pages = STOCK_VERSIONS.map((version) => buildStockPage(version, directory.path))
  emulator = await startEmulator({ paceMs: 5, respond: firstOf(scriptResponder, demoModel) })
  const program = await bundleProgram(new URL('../apps/demo/src/server/main.ts', import.meta.url))
  cluster = await startCluster(
    {
      PORT: '0',
      DATA_DIR: join(directory.path, 'data'),
      GOOGLE_API_KEY: 'e2e',
      GOOGLE_GEMINI_BASE_URL: emulator.baseUrl,
    },
    { program: [program], onChange: () => undefined },
  )
  await Promise.all(pages)
})
afterAll(async () => {
  await cluster?.close()
  await emulator?.close()
  await directory?.[Symbol.asyncDispose]()
})
afterEach(async () => {
  try {
    await contexts.closeWithoutErrors()
  } finally {
    // A gate that a failed test has released is closed when the test runs again.
    emulator.reset()
  }
})

describe.each(STOCK_VERSIONS)('ai %s', (version) => {
  const it = takeTurns({ group: STOCK_VERSIONS.indexOf(version), groups: STOCK_VERSIONS.length })

  it('[DM340] a payment that one instance requested is approved at the other and made once', async () => {
    const chat = await openChat(version, 'approve')
    await chat.send('Send $30 to Alice')
    await chat.page.getByRole('button', { name: 'Approve' }).click()
    await chat.page.getByLabel('output-available').getByText('"wallet_balance":970').waitFor()
    await chat.waitUntilIdle()
    expect(chat.instances('POST').length).toBe(2)
    expect(new Set(chat.instances('POST')).size).toBe(2)
    const shown = await chat.replies()
    await chat.page.reload()
    await chat.page.getByLabel('output-available').waitFor()
    expect(await chat.replies()).toEqual(shown)
    expect(shown).toHaveLength(1)
  })

  longTest(
    '[DM340] after a reload in the middle of a reply, the other instance continues it',
    async () => {
      const chat = await openChat(version, 'reload')
      const gate = `reload-${version}`
      await chat.send(`[[say Before the reload,]][[wait ${gate}]][[say and after it.]]`)
      await chat.page.getByText('Before the reload,', { exact: true }).waitFor()
      await chat.skipInstance()
      await chat.page.reload()
      await chat.page.getByText('Before the reload,', { exact: true }).waitFor()
      expect(chat.instances('GET').at(-1)).not.toBe(chat.instances('POST').at(-1))
      emulator.release(gate)
      await chat.page.getByText('and after it.').waitFor()
      await chat.waitUntilIdle()
      expect(await chat.replies()).toEqual([
        expect.stringMatching(/^Before the reload, ?and after it\.$/),
      ])
      expect(findModelRequests(gate)).toHaveLength(1)
    },
  )

  longTest(
    '[DM340] a reply is stopped through the other instance, also at the model, and keeps its text',
    async () => {
      const chat = await openChat(version, 'stop')
      const gate = `stop-${version}`
      await chat.send(`[[say I could go on]][[wait ${gate}]][[say and on.]]`)
      await chat.page.getByText('I could go on', { exact: true }).waitFor()
      const stopped = chat.page.waitForResponse((response) => response.url().endsWith('/stop'))
      await chat.page.getByRole('button', { name: 'Stop' }).click()
      const { instance } = readInstance(await stopped)
      expect(instance).not.toBe(chat.instances('POST').at(-1))
      await expect.poll(() => findModelRequests(gate).map(({ aborted }) => aborted)).toEqual([true])
      emulator.release(gate)
      await chat.page.reload()
      await chat.page.getByText('I could go on', { exact: true }).waitFor()
      await chat.send('[[say The next reply.]]')
      await chat.page.getByText('The next reply.', { exact: true }).waitFor()
      await chat.waitUntilIdle()
      expect(await chat.replies()).toEqual(['I could go on', 'The next reply.'])
    },
  )
})

describe('the instance with the live socket is killed', () => {
  // Waits until an instance that an earlier test has killed runs again.
  beforeEach(async () => {
    const running = new Set<string>()
    await vi.waitUntil(
      async () => {
        const { headers } = await fetch(`${cluster.url}/health`)
        const instance = headers.get('x-studio-instance')
        if (instance !== null) running.add(instance)
        return running.size === 2
      },
      { timeout: 120_000 },
    )
  })

  longTest(
    '[DM550] the page reconnects to the other instance, where the payment is approved and made once',
    async () => {
      const page = await contexts.openPage(cluster.url)
      await page.addInitScript(() => localStorage.setItem('mode', 'live'))
      const sockets = await watchSockets(page)
      await page.goto(cluster.url)
      const { send, tool, waitUntilIdle, replies } = chatPage(page)
      await send('Send $30 to Alice')
      const card = tool('Alice')
      await card.waitFor()
      await waitUntilIdle()
      const id = (await page.locator('.adk-approval').getAttribute('data-approval')) ?? ''
      // The relay has the first sentence when the second one is sent.
      await send('[[say Half of it.]][[pause 1000]][[say More.]][[wait never]]')
      await replies.getByText('More.').waitFor()
      const killed = killInstance(sockets.instances.at(-1))
      await expect.poll(() => sockets.instances.at(-1)).not.toBe(killed)
      await decide(card, 'approve')
      await waitForOutcome(card)
      const texts = () => replies.locator('.markdown').allTextContents()
      await expect.poll(async () => (await texts()).join()).toContain('I sent $30.00')
      await waitUntilIdle()
      expect(await readHistory(page, id)).toEqual(RAN_ONCE)
      // The balance is that of one payment. The text of the reply that the killed instance began is kept.
      await card.getByText('$970.00').first().waitFor()
      const shown = await texts()
      expect(shown.join().match(/I sent \$30\.00/g)).toHaveLength(1)
      expect(shown.join().match(/Half of it\./g)).toHaveLength(1)
      await page.reload()
      await expect.poll(texts).toEqual(shown)
    },
  )

  longTest(
    '[DM550] stock useChat of ai 7 approves at the other instance, and the payment is made once',
    async () => {
      const chat = await openChat('7', 'killed', { isLive: true })
      await chat.send('Send $30 to Alice')
      const approve = chat.page.getByRole('button', { name: 'Approve' })
      await approve.waitFor()
      await chat.waitUntilIdle()
      const [id = ''] = await readPending(chat.page)
      const killed = killInstance(chat.sockets.instances.at(-1))
      // The transport of the AI SDK connects again only if it has seen that the connection was lost.
      await expect.poll(chat.sockets.open).toBe(0)
      await approve.click()
      await chat.page.getByLabel('output-available').getByText('"wallet_balance":970').waitFor()
      await chat.page.getByText('I sent $30.00 to Alice').waitFor()
      await chat.waitUntilIdle()
      expect(chat.sockets.instances.at(-1)).not.toBe(killed)
      expect(await readHistory(chat.page, id)).toEqual(RAN_ONCE)
      const shown = await chat.replies()
      expect(shown).toHaveLength(1)
      await chat.page.reload()
      await chat.page.getByLabel('output-available').waitFor()
      expect(await chat.replies()).toEqual(shown)
    },
  )
})

/** Observes the sockets of a page. */
async function watchSockets(page: Page) {
  const session = await page.context().newCDPSession(page)
  /** The instances to which the page has opened sockets, in order. */
  const instances: string[] = []
  const open = new Set<string>()
  session.on('Network.webSocketHandshakeResponseReceived', ({ requestId, response }) => {
    const instance = response.headers['x-studio-instance']
    if (response.status !== 101 || instance === undefined) return
    instances.push(instance)
    open.add(requestId)
  })
  session.on('Network.webSocketClosed', ({ requestId }) => void open.delete(requestId))
  await session.send('Network.enable')
  return { instances, open: () => open.size }
}

/** Kills an instance. The cluster starts it again with another process id. */
function killInstance(name: string | undefined): string {
  const pid = cluster.pids().get(name ?? '')
  if (name === undefined || pid === undefined) throw new Error(`No instance ${name} runs.`)
  process.kill(pid, 'SIGKILL')
  return name
}

async function readPending(page: Page): Promise<string[]> {
  const response = await page.request.get(`${cluster.url}/approvals`)
  return Pending.parse(await response.json()).approvals.map(({ id }) => id)
}

/** Returns the types of the audit entries of an approval. */
async function readHistory(page: Page, id: string): Promise<string[]> {
  const response = await page.request.get(`${cluster.url}/approvals/${id}`)
  return History.parse(await response.json()).history.map(({ type }) => type)
}

/** Opens a chat as a new user, in a page with stock `useChat`. */
async function openChat(version: '6' | '7', name: string, { isLive = false } = {}) {
  const page = await contexts.openPage(cluster.url)
  const sockets = await watchSockets(page)
  const streams: { readonly method: string; readonly instance: string | undefined }[] = []
  page.on('response', (response) => {
    if (new URL(response.url()).pathname.startsWith('/stream')) streams.push(readInstance(response))
  })
  await serveStockPages(page, directory.path)
  // AP11: a page that sends a message before this response may send a decision twice.
  const resumption = isLive || page.waitForResponse(/\/stream\/[^/]+\/stream$/)
  await page.goto(`${cluster.url}/stock/${version}/?chat=${name}${isLive ? '&live' : ''}`)
  await resumption
  return {
    page,
    sockets,
    /** Returns the instances that responded to requests for a stream, in order. */
    instances: (method: 'GET' | 'POST') =>
      streams.flatMap((stream) => (stream.method === method ? (stream.instance ?? '?') : [])),
    send: async (text: string): Promise<void> => {
      const field = page.getByRole('textbox', { name: 'Message' })
      await field.fill(text)
      await field.press('Enter')
    },
    waitUntilIdle: () => page.locator('main[aria-busy=false]').waitFor(),
    replies: () => page.getByLabel('assistant').allTextContents(),
    /** Sends a request, so that the page's next one goes to the other instance. */
    skipInstance: () => fetch(`${cluster.url}/health`),
  }
}

function readInstance(response: Awaited<ReturnType<Page['waitForResponse']>>) {
  const instance = response.headers()['x-studio-instance']
  return { method: response.request().method(), instance }
}

/** Returns the requests to the model that contain this text. */
function findModelRequests(text: string) {
  return emulator.requests.filter(({ body }) => JSON.stringify(body).includes(text))
}
