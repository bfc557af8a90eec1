import { FunctionTool } from '@google/adk'
import { describe, expect, test } from 'vitest'

import { openSqliteStore, type Store } from '../../src/store/index.ts'
import { StoreError } from '../../src/store/store-error.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import type { SocketClient } from '../sockets/support/socket-client.ts'
import { defer } from '../support/agents.ts'
import { toolParts } from '../support/chat-probe.ts'
import { ASK, locationTool, TOKYO } from '../support/locating.ts'
import { chunkOf, joinLive, untilAsked, whole } from './support/live-test-bridge.ts'

/** Opens a chat whose model has called a browser tool. The call is approved if it is gated. */
async function openCall(store: Store, gated: boolean) {
  const testBridge = await TestBridge.open({
    tools: () => [locationTool({ gated })],
    openStore: async () => store,
    limits: { leaseMs: 600_000, sweepMs: 20 },
  })
  const client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.say(ASK)
  await whole(client)
  const { toolCallId } = await chunkOf(client, 'tool-input-available')
  if (gated) {
    const [approvalId = ''] = await untilAsked(client)
    client.send({ type: 'decide', decisionId: 'd', id: 'chat-1', approvalId, approved: true })
    await client.nextOf('decided')
  }
  const readCall = async () => toolParts((await testBridge.page().messages())[1])[0]
  return {
    testBridge,
    client,
    readCall,
    give: () => giveOutput(client, toolCallId),
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]()
      await testBridge[Symbol.asyncDispose]()
    },
  }
}

function giveOutput(client: SocketClient, toolCallId: unknown): void {
  const output = { type: 'tool-output', outputId: 'o1', id: 'chat-1', toolCallId, output: TOKYO }
  client.send(output)
}

type Append = Store['sessions']['appendEvent']

/** Replaces how events are stored whose JSON contains a text. */
function onAppend(
  { sessions }: Store,
  text: string,
  replace: (append: () => ReturnType<Append>) => ReturnType<Append>,
) {
  const appendEvent = sessions.appendEvent.bind(sessions)
  sessions.appendEvent = (request) => {
    const append = () => appendEvent(request)
    return JSON.stringify(request.event).includes(text) ? replace(append) : append()
  }
}

const LATITUDE = '"latitude":35.7'

test('[LV1581] the output of a browser tool is acknowledged when it is stored, and counts once if it is sent again before', async () => {
  const store = await openSqliteStore({ path: ':memory:' })
  const [begun, stored] = [defer(), defer()]
  onAppend(store, LATITUDE, async (append) => {
    begun.resolve()
    await stored.promise
    return append()
  })
  await using call = await openCall(store, false)
  call.give()
  await begun.promise
  await call.client.sync()
  expect(call.client.frames.filter(({ type }) => type === 'tool-output-taken')).toEqual([])
  // The client has lost its connection, and sends the output again.
  await using again = await joinLive(call.testBridge)
  const { toolCallId } = await chunkOf(call.client, 'tool-input-available')
  giveOutput(again, toolCallId)
  await again.sync()
  stored.resolve()
  expect(await call.client.nextOf('tool-output-taken')).toMatchObject({ ok: true })
  expect(await again.nextOf('tool-output-taken')).toMatchObject({ code: 'nothing-new' })
  expect(await call.readCall()).toMatchObject({ state: 'output-available', output: TOKYO })
  expect(call.testBridge.results).toMatchObject([TOKYO])
})

test.each([
  ['before it is stored', false],
  ['after it was stored', true],
])(
  '[LV1581] if the store fails %s, the output of a browser tool is stored and reaches the model when the store works again',
  async (_name, isStored) => {
    const store = await openSqliteStore({ path: ':memory:' })
    let failures = 0
    onAppend(store, LATITUDE, async (append) => {
      const event = isStored ? await append() : undefined
      failures += 1
      if (failures === 1) throw new StoreError('unavailable', 'The database has failed.')
      return event ?? append()
    })
    await using call = await openCall(store, false)
    call.give()
    expect(await call.client.nextOf('tool-output-taken')).toMatchObject({ ok: true })
    expect(await call.readCall()).toMatchObject({ state: 'output-available', output: TOKYO })
    await expect.poll(() => call.testBridge.results).toMatchObject([TOKYO])
    expect(failures).toBe(2)
  },
)

/** The steps of a handover that the store may fail in. */
const STEPS: readonly (readonly [string, (store: Store, fail: () => void) => void])[] = [
  [
    'the offer is stored',
    (store, fail) =>
      onAppend(store, '"handedOver"', async (append) => {
        fail()
        return append()
      }),
  ],
  [
    'its time limit is stored',
    ({ browserCalls }, fail) => {
      const add = browserCalls.add.bind(browserCalls)
      browserCalls.add = async (...given) => {
        fail()
        return add(...given)
      }
    },
  ],
]

describe.each(STEPS)('the store fails before %s', (_name, prepare) => {
  /** Opens a chat whose call is approved while the store fails once. */
  const open = async (code: 'unavailable' | 'full') => {
    const store = await openSqliteStore({ path: ':memory:' })
    let failures = 0
    prepare(store, () => {
      failures += 1
      if (failures === 1) throw new StoreError(code, 'The database has failed.')
    })
    const call = await openCall(store, true)
    await expect.poll(() => failures).toBeGreaterThan(0)
    return call
  }

  test('[BT1580] an approved browser call is handed over when the store works again, and has the result of the client', async () => {
    await using call = await open('unavailable')
    await call.client.nextOf('decided')
    await expect.poll(call.readCall).toMatchObject({ state: 'input-available' })
    call.give()
    expect(await call.client.nextOf('tool-output-taken')).toMatchObject({ ok: true })
    await expect.poll(call.readCall).toMatchObject({ state: 'output-available', output: TOKYO })
  })

  test('[BT1580] an approved browser call that cannot be handed over ends with an error, and not as if it had run', async () => {
    await using call = await open('full')
    await expect.poll(call.readCall).toMatchObject({ state: 'output-error' })
  })
})

test('[BT1580] an approved long-running call whose result could not be stored waits for the application, and does not end with an empty result', async () => {
  const store = await openSqliteStore({ path: ':memory:' })
  let failures = 0
  onAppend(store, '"outcome":"succeeded"', async (append) => {
    failures += 1
    if (failures === 1) throw new StoreError('full', 'The disk is full.')
    return append()
  })
  const report = new FunctionTool({
    name: 'run_report',
    description: 'Begins a report.',
    isLongRunning: true,
    requireConfirmation: true,
    execute: () => undefined,
  })
  await using testBridge = await TestBridge.open({
    tools: () => [report],
    openStore: async () => store,
    limits: { leaseMs: 600_000, sweepMs: 20 },
  })
  await using client = await joinLive(testBridge)
  client.say('[[call run_report {}]][[then]][[say It says up.]]')
  const [approvalId = ''] = await untilAsked(client)
  client.send({ type: 'decide', decisionId: 'd', id: 'chat-1', approvalId, approved: true })
  await expect.poll(() => failures).toBeGreaterThan(1)
  await expect.poll(() => testBridge.results).toMatchObject([{ status: 'pending' }])
})
