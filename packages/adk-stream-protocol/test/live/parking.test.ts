import { EventEmitter, once } from 'node:events'

import type { UIMessage } from 'ai'
import { lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai'
import Database from 'libsql'
import { describe, expect, test } from 'vitest'

import { DATABASE_CLOCK } from '../../src/store/sqlite/approval-sql.ts'
import { openSqliteStore, openWithClocks } from '../../src/store/sqlite/sqlite-store.ts'

import { nest } from '../approvals/support/nested-agents.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import type { TestBridge } from '../approvals/support/test-bridge.ts'
import type { SocketClient } from '../sockets/support/socket-client.ts'
import { takeTurns } from '../../../../test/support/take-turns.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import {
  faultsOf,
  joinLive,
  lastSession,
  type LiveTestBridgeOptions,
  unasked,
  untilAsked,
  whole,
} from './support/live-test-bridge.ts'
import { openParking, receivedOf, toolStates, untilShown } from './support/parking.ts'
import { speak } from './support/voice.ts'

const AWAITING = { response: { status: 'awaiting_approval' } }

/** A database whose clock a test advances. */
async function openClock() {
  const folder = await temporaryDirectory()
  const path = folder.file('clock.db')
  await (await openSqliteStore({ path })).close()
  const database = new Database(path, { timeout: 30_000 })
  database.exec('CREATE TABLE jump (ms INTEGER); INSERT INTO jump VALUES (0)')
  const clock = `(${DATABASE_CLOCK} + (SELECT ms FROM jump))`
  return {
    openStore: () => openWithClocks({ path }, { clock }),
    advance: (ms: number) => database.exec(`UPDATE jump SET ms = ${ms}`),
    async [Symbol.asyncDispose]() {
      database.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}

interface Input {
  readonly name: string
  readonly spoken: boolean
  /** Asks the model for a text, and resolves when it was said. */
  readonly ask: (testBridge: TestBridge, client: SocketClient, say: string) => Promise<void>
}

const INPUTS: readonly Input[] = [
  {
    name: 'speaks',
    spoken: true,
    async ask(testBridge, client, say) {
      testBridge.emulator.live.queueTranscript(`[[say ${say}]]`)
      speak(client)
      await client.next(() => unasked(client).some((request) => client.text(request) === say))
    },
  },
  {
    name: 'writes',
    spoken: false,
    async ask(_, client, say) {
      client.say(`[[say ${say}]]`, `r-${say}`)
      expect(await whole(client, `r-${say}`)).toBe(say)
    },
  },
]

describe.each(INPUTS)('a person who $name while a call waits', ({ ask, spoken }) => {
  const it = takeTurns({ group: spoken ? 0 : 1, groups: 2 })
  const open = (options: LiveTestBridgeOptions = {}) => openParking({ spoken, ...options })

  async function join(testBridge: TestBridge): Promise<SocketClient> {
    const client = await joinLive(testBridge)
    client.send({ type: 'watch', id: 'chat-1', ...(spoken && { audio: 'binary' }) })
    return client
  }

  test.each([true, false])(
    '[LV12] [LV600] keeps the approval, and the model receives the outcome as text; approved: %s',
    async (approved) => {
      await using testBridge = await open()
      await using client = await join(testBridge)
      client.say(`${callPayment(50)} [[then]] [[say It is paid already.]]`)
      const [id = ''] = await untilAsked(client)
      expect(receivedOf(testBridge).responses).toEqual([])
      await ask(testBridge, client, 'Fifty dollars.')
      // The model has the status and claims success; the card shows the state of the ledger.
      expect(receivedOf(testBridge)).toMatchObject({ responses: [AWAITING], texts: [] })
      expect(lastSession(testBridge).pendingCalls).toEqual([])
      expect(await testBridge.page().history(id)).toEqual(['requested'])
      expect(await toolStates(testBridge)).toEqual(['approval-requested'])
      expect(testBridge.wallet.payments).toEqual([])
      expect(await testBridge.page().decide(id, { approved })).toMatchObject({ status: 200 })
      await untilShown(testBridge, 'Told [Result of')
      expect(testBridge.wallet.payments).toHaveLength(approved ? 1 : 0)
      expect(await toolStates(testBridge)).toEqual([
        approved ? 'output-available' : 'output-denied',
      ])
      const { responses, texts } = receivedOf(testBridge)
      expect(responses).toHaveLength(1)
      expect(texts).toEqual([
        expect.stringMatching(
          approved
            ? /^\[Result of the call \S+, process_payment\(\{.*"amount":50.*\}\), .*"success":true/
            : /^\[Result of the call \S+, process_payment\(.*"status":"denied"/,
        ),
      ])
      // It continues the message of the call, and no client sees the text as a message of the person.
      const [, reply, question] = await testBridge.page().messages()
      expect(JSON.stringify(reply)).toContain('Told [Result of')
      expect(question).toMatchObject({ role: 'user' })
      await ask(testBridge, client, 'Next.')
      expect(receivedOf(testBridge).texts).toHaveLength(1)
      for (const request of ['r1', ...unasked(client)])
        expect(await faultsOf(client, request)).toEqual([])
      expect(testBridge.errors).toEqual([])
    },
  )

  it('[LV600] a parked call expires, and the model receives that once', async () => {
    await using clock = await openClock()
    await using testBridge = await open({
      openStore: clock.openStore,
      live: { approvalDeadlineMs: 3_600_000 },
    })
    await using client = await join(testBridge)
    client.say(`${callPayment(50)} [[then]] [[say It waits.]]`)
    const [id = ''] = await untilAsked(client)
    await ask(testBridge, client, 'Fifty dollars.')
    clock.advance(4_000_000)
    await testBridge.page().untilState(id, 'expired')
    await untilShown(testBridge, 'Told [Result of')
    expect(receivedOf(testBridge)).toMatchObject({
      responses: [AWAITING],
      texts: [expect.stringContaining('"status":"expired"')],
    })
    expect(await toolStates(testBridge)).toEqual(['output-error'])
    expect(testBridge.wallet.payments).toEqual([])
  })

  it('[LV600] two parked calls are decided in any order, and the model receives each outcome', async () => {
    await using testBridge = await open()
    await using client = await join(testBridge)
    client.say(`${callPayment(50)} ${callPayment(30, '太郎')} [[then]] [[say Both wait.]]`)
    const [first = '', second = ''] = await untilAsked(client, 2)
    await ask(testBridge, client, 'Eighty dollars.')
    expect(receivedOf(testBridge).responses).toMatchObject([AWAITING, AWAITING])
    const page = testBridge.page()
    await page.decide(second, { approved: true })
    await expect.poll(() => receivedOf(testBridge).texts.length).toBe(1)
    await page.decide(first, { approved: false })
    await expect.poll(() => receivedOf(testBridge).texts.length).toBe(2)
    const [paid, denied] = receivedOf(testBridge).texts
    expect(paid).toMatch(/"amount":30.*"success":true/)
    expect(denied).toMatch(/"amount":50.*"status":"denied"/)
    await untilShown(testBridge, 'denied this call')
    expect(await toolStates(testBridge)).toEqual(['output-denied', 'output-available'])
    expect(testBridge.wallet.payments).toEqual([{ amount: 30, recipient: '太郎' }])
    await ask(testBridge, client, 'Next.')
    expect(testBridge.errors).toEqual([])
  })

  it('[LV600] a call inside an agent stays open, and the agent’s reply reaches the model as text', async () => {
    await using testBridge = await open({
      agent: (model, tools) => nest(model, tools),
    })
    await using client = await join(testBridge)
    const request = `${callPayment(50)}[[then]][[say Booked.]]`
    client.say(`[[call travel ${JSON.stringify({ request })}]] [[then]] [[say It waits.]]`)
    const [id = ''] = await untilAsked(client)
    await ask(testBridge, client, 'Fifty dollars.')
    expect(await testBridge.page().inbox()).toHaveLength(1)
    await testBridge.page().decide(id, { approved: true })
    await untilShown(testBridge, 'Told [Result of')
    const { responses, texts } = receivedOf(testBridge)
    expect(responses).toMatchObject([AWAITING])
    expect(texts).toEqual([expect.stringMatching(/travel\(.*"result":"Booked\."/)])
    expect(testBridge.wallet.payments).toHaveLength(1)
  })
})

test('[LV600] a call that runs after its approval is parked as running, and the model receives the result', async () => {
  const events = new EventEmitter()
  const started = once(events, 'started')
  const finished = once(events, 'finished')
  const before = async (): Promise<void> => {
    events.emit('started')
    await finished
  }
  await using testBridge = await openParking({
    tools: (wallet) => [paymentTool(wallet, { before })],
  })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.say(`${callPayment(50)} [[then]] [[say It runs.]]`)
  const [id = ''] = await untilAsked(client)
  await testBridge.page().decide(id, { approved: true })
  await started
  client.say('[[say Soon.]]', 'r2')
  await lastSession(testBridge).waitFor((frame) => 'toolResponse' in frame)
  expect(receivedOf(testBridge).responses).toMatchObject([{ response: { status: 'running' } }])
  events.emit('finished')
  await untilShown(testBridge, 'Told [Result of')
  expect(await whole(client, 'r2')).toBe('Soon.')
  expect(receivedOf(testBridge).texts).toEqual([expect.stringContaining('"success":true')])
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test('[LV12] a call that the model withdraws before it has a status is cancelled', async () => {
  await using testBridge = await openParking()
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.say(`${callPayment(50)} [[wait seen]] [[cancel]]`)
  const [id = ''] = await untilAsked(client)
  testBridge.emulator.release('seen')
  await testBridge.page().untilState(id, 'cancelled')
  client.say('[[say And on.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('And on.')
  expect(receivedOf(testBridge)).toEqual({ responses: [], texts: [] })
})

test('[LV12] a cancellation of a call that the model knows to wait changes nothing', async () => {
  await using testBridge = await openParking()
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.say(`${callPayment(30)} [[then]] [[say It waits.]]`)
  const [id = ''] = await untilAsked(client)
  client.say('[[say Thirty dollars.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('Thirty dollars.')
  const ids = receivedOf(testBridge).responses.map((response) => response.id)
  lastSession(testBridge).send({ toolCallCancellation: { ids } })
  client.say('[[say Still here.]]', 'r3')
  expect(await whole(client, 'r3')).toBe('Still here.')
  expect(await testBridge.page().history(id)).toEqual(['requested'])
  await testBridge.page().decide(id, { approved: true })
  await untilShown(testBridge, 'Told [Result of')
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test('[LV600] [LV10] a held stream does not keep the reply to the next message from streaming', async () => {
  await using testBridge = await openParking()
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  const text = `${callPayment(50)} [[then]] [[say It waits.]]`
  const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text }] }
  const body = { hold: true }
  client.send({ type: 'send', requestId: 'r1', id: 'chat-1', messages: [message], body })
  const [id = ''] = await untilAsked(client)
  client.say('[[say Fifty dollars.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('Fifty dollars.')
  await testBridge.page().decide(id, { approved: true })
  await untilShown(testBridge, 'Told [Result of')
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test('[LV600] an open microphone parks a call; a stock client still sends the decision by itself', async () => {
  await using testBridge = await openParking({ spoken: true })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1', audio: 'binary' })
  client.say(`${callPayment(50)} [[then]] [[say It waits for you.]]`)
  const [id = ''] = await untilAsked(client)
  client.socket.send(Buffer.alloc(3_200))
  await untilShown(testBridge, 'It waits for you.')
  const [, reply] = await testBridge.page().messages()
  const approval = { id, approved: true }
  const parts = (reply?.parts ?? []).map((part) =>
    part.type === 'tool-process_payment'
      ? { ...part, state: 'approval-responded', approval }
      : part,
  )
  const answered = { ...reply, parts } as unknown as UIMessage
  expect(lastAssistantMessageIsCompleteWithApprovalResponses({ messages: [answered] })).toBe(true)
})

test('[LV602] after a lost connection the model has one response for a parked call, and receives the outcome once', async () => {
  await using testBridge = await openParking()
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.say(`${callPayment(50)} [[then]] [[say It waits.]]`)
  const [id = ''] = await untilAsked(client)
  client.say('[[say Fifty dollars.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('Fifty dollars.')
  lastSession(testBridge).drop()
  await expect.poll(() => testBridge.emulator.live.sessions.length).toBe(2)
  client.say('[[say Still fifty.]]', 'r3')
  expect(await whole(client, 'r3')).toBe('Still fifty.')
  expect(testBridge.lastPrompt.match(/awaiting_approval/g)).toHaveLength(1)
  await testBridge.page().decide(id, { approved: true })
  await untilShown(testBridge, 'Told [Result of')
  client.say('[[say Bye.]]', 'r4')
  expect(await whole(client, 'r4')).toBe('Bye.')
  expect(testBridge.lastPrompt.match(/awaiting_approval/g)).toHaveLength(1)
  expect(receivedOf(testBridge).texts).toHaveLength(1)
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test('[LV602] a session that is restored from its messages knows the call once, with its outcome', async () => {
  await using testBridge = await openParking()
  const first = await joinLive(testBridge)
  first.say(`${callPayment(50)} [[then]] [[say It waits.]]`)
  const [id = ''] = await untilAsked(first)
  first.say('[[say Fifty dollars.]]', 'r2')
  expect(await whole(first, 'r2')).toBe('Fifty dollars.')
  await first[Symbol.asyncDispose]()
  await testBridge.restart()
  await testBridge.page().decide(id, { approved: true })
  await testBridge.page().untilState(id, 'succeeded')
  await using second = await joinLive(testBridge)
  second.say('[[say And on.]]', 'r3')
  expect(await whole(second, 'r3')).toBe('And on.')
  expect(testBridge.lastPrompt.match(/process_payment returned/g)).toHaveLength(1)
  expect(testBridge.lastPrompt).toContain('\\"success\\":true')
  expect(testBridge.lastPrompt).not.toContain('awaiting_approval')
  expect(testBridge.wallet.payments).toHaveLength(1)
})
