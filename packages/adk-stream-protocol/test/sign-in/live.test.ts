import { Modality } from '@google/genai'
import { describe, expect, test } from 'vitest'

import { FREE_MODEL } from '../approvals/support/test-bridge.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import { openSqliteStore } from '../../src/store/index.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { nest, through } from './support/nesting.ts'
import type { SignInBridgeOptions, SignInPerson } from './support/sign-in-bridge.ts'
import { readMail, SignInBridge } from './support/sign-in-bridge.ts'

const BLOCKING_MODEL = 'gemini-3.1-flash-live-preview'
const RAN = ['requested', 'approved', 'started', 'succeeded']

type LiveOptions = Omit<SignInBridgeOptions, 'live'> & { readonly approvalDeadlineMs?: number }

/** A bridge with live sessions, whose tool needs an approval and a sign-in. */
function openLive({ approvalDeadlineMs, ...options }: LiveOptions = {}): Promise<SignInBridge> {
  return SignInBridge.open({
    requireConfirmation: true,
    limits: { sweepMs: 20 },
    ...options,
    live: (model) => ({
      model,
      runConfig: { responseModalities: [Modality.TEXT] },
      ...(approvalDeadlineMs !== undefined && { approvalDeadlineMs }),
    }),
  })
}

async function join(bridge: SignInBridge): Promise<SocketClient> {
  const client = await SocketClient.open(bridge.server.url, { headers: { 'x-api-key': 'hanako' } })
  client.send({ type: 'watch', id: 'chat-1' })
  return client
}

/** Approves the call that waits, and returns the ids of the approval and of the sign-in that follows. */
async function approve(
  person: SignInPerson,
  body: object = {},
): Promise<readonly [approval: string, signIn: string]> {
  const approval = await person.untilAsked()
  expect(await person.questions()).toMatchObject([{ toolName: 'read_mail' }])
  const decided = { approved: true, ...body }
  expect((await person.request('POST', `/approvals/${approval}`, decided)).status).toBe(200)
  await person.untilState(approval, 'succeeded')
  const signIn = await person.untilAsked()
  expect(await person.questions()).toMatchObject([{ id: signIn, kind: 'sign-in' }])
  return [approval, signIn]
}

async function historyOf(person: SignInPerson, id: string): Promise<readonly string[]> {
  const { body } = await person.request('GET', `/approvals/${id}`)
  return (body.history ?? []).map(({ type }) => type)
}

async function mailParts(person: SignInPerson): Promise<unknown[]> {
  const { body } = await person.request('GET', '/chats/chat-1/messages')
  const parts = body.messages?.flatMap((message) => message.parts) ?? []
  return parts.filter(({ type }) => type === 'tool-read_mail')
}

/** Everything that the live model received. */
function received({ server }: SignInBridge): Record<string, unknown>[] {
  return server.emulator.live.sessions.flatMap((session) => session.received)
}

/** What the live model received as the final results of its calls. */
function resultsOf(bridge: SignInBridge): unknown[] {
  return received(bridge).flatMap((frame) => {
    const { functionResponses = [] } = (frame['toolResponse'] ?? {}) as {
      functionResponses?: { response: unknown; willContinue?: boolean }[]
    }
    return functionResponses.flatMap(({ response, willContinue }) =>
      willContinue === true ? [] : [response],
    )
  })
}

describe.each([
  ['a model that goes on talking', FREE_MODEL],
  ['a model that waits', BLOCKING_MODEL],
])('%s', (_name, liveModel) => {
  test.each([[[]], [['desk']]] as const)(
    '[AP690] a call inside %j is approved once, waits for the sign-in, and the model receives its result once',
    async (names) => {
      await using bridge = await openLive({ liveModel, makeAgent: nest(names) })
      const hanako = bridge.person()
      await using client = await join(bridge)
      client.say(through(names, readMail()))
      const [approval, signIn] = await approve(hanako)
      await expect
        .poll(() => mailParts(hanako))
        .toMatchObject([{ output: { status: 'pending' } }, { state: 'input-available' }])
      expect(resultsOf(bridge)).toEqual([])
      expect(bridge.tokens).toEqual([])
      expect((await hanako.signIn(signIn)).status).toBe(200)
      await hanako.untilSaid(names[0] === undefined ? 'Done.' : `After ${names[0]}.`)
      expect(await mailParts(hanako)).toMatchObject([
        { output: { account: 'hanako' } },
        { output: { status: 'signed-in' } },
      ])
      const result = names[0] === undefined ? { account: 'hanako' } : { result: 'Done.' }
      expect(resultsOf(bridge)).toEqual([result])
      expect(bridge.tokens).toHaveLength(1)
      expect(await historyOf(hanako, approval)).toEqual(RAN)
      expect(await historyOf(hanako, signIn)).toEqual(RAN)
      expect(await hanako.questions()).toEqual([])
      expect(bridge.server.errors).toEqual([])
    },
  )

  test('[AP690] the sign-in waits while the page and Gemini reconnect', async () => {
    await using bridge = await openLive({ liveModel })
    const hanako = bridge.person()
    {
      await using client = await join(bridge)
      client.say(readMail())
      await approve(hanako)
    }
    const { sessions } = bridge.server.emulator.live
    const { length } = sessions
    sessions.at(-1)?.drop()
    await expect.poll(() => sessions.length).toBeGreaterThan(length)
    await using again = await join(bridge)
    await again.sync()
    await hanako.signIn(await hanako.untilAsked())
    await hanako.untilSaid('"account":"hanako"')
    await expect.poll(() => JSON.stringify(received(bridge))).toContain('"account":"hanako"')
    expect(bridge.tokens).toHaveLength(1)
  })
})

test('[AP690] a person who says something else keeps the sign-in open, and a model that waits receives the result as text', async () => {
  await using bridge = await openLive({ liveModel: BLOCKING_MODEL })
  const hanako = bridge.person()
  await using client = await join(bridge)
  client.say(readMail())
  const [, signIn] = await approve(hanako)
  client.say('[[say Yes?]]', 'r2')
  await client.untilText('Yes?', 'r2')
  expect(resultsOf(bridge)).toMatchObject([{ status: 'awaiting_approval' }])
  await hanako.signIn(signIn)
  const texts = () => JSON.stringify(received(bridge)).match(/Result of the call/g)
  await expect.poll(texts).toHaveLength(1)
  expect(JSON.stringify(received(bridge))).toContain('{\\"account\\":\\"hanako\\"}')
  expect(resultsOf(bridge)).toHaveLength(1)
  expect(bridge.tokens).toHaveLength(1)
})

test('[AP690] a sign-in that is declined ends the call without running it, and the model receives that', async () => {
  await using bridge = await openLive()
  const hanako = bridge.person()
  await using client = await join(bridge)
  client.say(readMail())
  const [, signIn] = await approve(hanako)
  await hanako.request('POST', `/approvals/${signIn}`, { approved: false })
  await hanako.untilSaid('Done.')
  expect(await mailParts(hanako)).toMatchObject([
    { output: { status: 'denied' } },
    { state: 'output-error' },
  ])
  expect(resultsOf(bridge)).toMatchObject([{ status: 'denied' }])
  expect(bridge.tokens).toEqual([])
  expect(await hanako.questions()).toEqual([])
})

test('[AP690] a sign-in has the deadline of live sessions, and its end ends the call', async () => {
  await using bridge = await openLive({ approvalDeadlineMs: 1_000 })
  const hanako = bridge.person()
  await using client = await join(bridge)
  client.say(readMail())
  const [, signIn] = await approve(hanako)
  await hanako.untilState(signIn, 'expired')
  await hanako.untilSaid('Done.')
  expect(resultsOf(bridge)).toMatchObject([{ status: 'expired' }])
  expect(bridge.tokens).toEqual([])
})

test('[AP690] a model that withdraws the call cancels the sign-in, and the call ends', async () => {
  await using bridge = await openLive({ liveModel: BLOCKING_MODEL })
  const hanako = bridge.person()
  await using client = await join(bridge)
  client.say('[[call read_mail {}]] [[wait seen]] [[cancel]]')
  const [, signIn] = await approve(hanako)
  bridge.server.emulator.release('seen')
  await hanako.untilState(signIn, 'cancelled')
  await expect
    .poll(() => mailParts(hanako))
    .toMatchObject([{ output: { status: 'cancelled' } }, { state: 'output-error' }])
  expect((await hanako.begin(signIn)).status).toBe(410)
  client.say('[[say And on.]]', 'r9')
  await client.untilText('And on.', 'r9')
  expect(bridge.tokens).toEqual([])
})

test('[AP690] the arguments that the person edited are those that run after the sign-in', async () => {
  await using bridge = await openLive({ use: () => ({ read: true }) })
  const hanako = bridge.person()
  await using client = await join(bridge)
  client.say(readMail())
  const [, signIn] = await approve(hanako, { args: { provider: 'example' } })
  await hanako.signIn(signIn)
  const parts = await hanako.untilSaid('Done.')
  expect(JSON.stringify(parts)).toContain('"editedArgs":{"provider":"example"}')
  expect(resultsOf(bridge)).toEqual([{ read: true }])
  expect(bridge.tokens).toHaveLength(1)
})

test.each([
  ['in the next live session', true],
  ['without a live session', false],
])(
  '[AP690] a server that is restarted while the sign-in is open runs the call once, %s',
  async (_name, isLiveAgain) => {
    await using folder = await temporaryDirectory()
    const open = () => openSqliteStore({ path: folder.file('store.db') })
    const store = await open()
    const first = await openLive({ store })
    await using oauth = first.oauth
    const before = first.person()
    const client = await join(first)
    client.say(readMail())
    const [approval, signIn] = await approve(before)
    await client[Symbol.asyncDispose]()
    await first.server[Symbol.asyncDispose]()
    await store.close()
    await using again = await open()
    await using second = await openLive({ store: again, sharedOAuth: oauth })
    const hanako = second.person()
    await using other = isLiveAgain ? await join(second) : undefined
    await other?.next((frame) => frame.type === 'status' && frame['status'] === 'open')
    expect((await hanako.signIn(signIn)).status).toBe(200)
    await hanako.untilState(signIn, 'succeeded')
    await hanako.untilSaid('"account":"hanako"')
    expect(await mailParts(hanako)).toMatchObject([
      { output: { account: 'hanako' } },
      { output: { status: 'signed-in' } },
    ])
    const isTold = () => JSON.stringify(received(second)).includes('hanako')
    await expect.poll(isTold).toBe(isLiveAgain)
    expect(second.tokens).toHaveLength(1)
    expect(await historyOf(hanako, approval)).toEqual(RAN)
    expect(await historyOf(hanako, signIn)).toEqual(RAN)
    expect(await hanako.questions()).toEqual([])
  },
)
