import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { describeWaits } from '../../src/agent/timeline/timeline-text.ts'
import { readApprovals } from '../../src/agent/timeline/build-timeline.ts'
import type { AuditEvent, AuditRecord } from '../../src/approvals/audit-entry.ts'
import type { Timeline, TimelineEntry, TimelineWait } from '../../src/protocol/timeline.ts'
import { browserTool } from '../../src/server/index.ts'
import type { Page } from '../approvals/support/page.ts'
import { ask, nest, pay, play, say } from '../approvals/support/nested-agents.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { TestBridge, type TestBridgeOptions } from '../approvals/support/test-bridge.ts'
import { openRelayPair } from '../relay/support/servers.ts'
import { assistant, defer, tool } from '../support/agents.ts'
import { createDatabase } from '../support/postgres.ts'
import { openStoreDatabase } from '../support/postgres-stores.ts'

const POLLING = { timeout: 120_000, interval: 20 }

const TWO_PEOPLE = {
  approvals: {
    process_payment: {
      title: 'Payment',
      chain: [{ principals: ['hanako'] }, { roles: ['manager'] }],
    },
  },
  mayReadAudit: ({ roles = [] }: { readonly roles?: readonly string[] }) =>
    roles.includes('manager'),
} satisfies TestBridgeOptions

type Of<Type extends TimelineEntry['type']> = Extract<TimelineEntry, { type: Type }>

function ofType<Type extends TimelineEntry['type']>({ entries }: Timeline, type: Type): Of<Type>[] {
  return entries.filter((entry): entry is Of<Type> => entry.type === type)
}

async function read(page: Page, query = '', chatId = 'chat-1') {
  const response = await page.fetch(`http://page/chats/${chatId}/timeline${query}`)
  return { status: response.status, body: (await response.json()) as Timeline }
}

const send = (text: string, id = 'chat-1') => ({
  id,
  messages: [{ id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }],
})

const locate = (gated: boolean) =>
  browserTool({
    name: gated ? 'gated_locate' : 'locate',
    description: 'Where the person is.',
    parameters: z.object({}),
    requireConfirmation: gated,
  })

const recordsOf = (...events: AuditEvent[]): AuditRecord[] =>
  events.map((event, at) => ({
    approvalId: 'x',
    chat: { appName: 'app', principalId: 'p', chatId: 'c' },
    version: at,
    seq: at,
    at,
    event,
  }))

const databases = {
  SQLite: async () => ({ options: {}, [Symbol.asyncDispose]: async () => {} }),
  PostgreSQL: async () => {
    const database = await openStoreDatabase()
    const { openStore } = database
    return { options: { openStore }, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() }
  },
}

describe.each(Object.entries(databases))('%s', (_name, open) => {
  test('[OB380] the timeline of a chat is the same after a restart: model, wait with votes, tool', async () => {
    await using database = await open()
    await using testBridge = await TestBridge.open({ ...TWO_PEOPLE, ...database.options })
    const page = testBridge.page()
    await page.post(send(`${callPayment(600)}[[then]][[say Paid.]]`))
    const [asked] = await page.inbox()
    const id = asked?.id ?? ''
    await page.decide(id, { approved: true })

    const waiting = (await read(page)).body
    expect(waiting.running).toBe(false)
    expect(ofType(waiting, 'turn')).toMatchObject([{ state: 'waiting' }])
    expect(ofType(waiting, 'turn')[0]).not.toHaveProperty('endedAt')
    expect(ofType(waiting, 'tool')).toEqual([])
    expect(waiting.waits).toMatchObject([
      {
        for: 'approval',
        approvalId: id,
        toolName: 'process_payment',
        title: 'Payment',
        given: 1,
        needed: 2,
        approvers: { principals: [], roles: ['manager'] },
        approvedBy: ['hanako'],
        byReader: false,
        votedByReader: true,
      },
    ])
    expect(waiting.why).toMatch(
      /^Waiting for a second approver for Payment \(amount: 600, recipient: 花子\): 1 of 2 has approved \(hanako\); expires at \d{4}-\d\d-\d\d \d\d:\d\d UTC\. Who may approve: the role manager\.$/,
    )

    await testBridge.page('mari').decide(id, { approved: true, reason: 'Agreed.' })
    await page.untilMessages((messages) => JSON.stringify(messages).includes('Paid.'))
    const done = (await read(page)).body
    expect(done.why).toBe('Idle: waiting for a message.')
    expect(done.entries.map(({ type }) => type)).toEqual([
      'message',
      'turn',
      'model',
      'approval',
      'tool',
      'model',
    ])
    const [message] = ofType(done, 'message')
    expect(message?.text).toContain('process_payment')
    const [approval] = ofType(done, 'approval')
    expect(approval).toMatchObject({
      state: 'succeeded',
      toolCallId: expect.any(String) as string,
      votes: [{ by: 'hanako' }, { by: 'mari' }],
      decision: { state: 'approved', by: 'mari', reason: 'Agreed.' },
    })
    const [run] = ofType(done, 'tool')
    expect(run).toMatchObject({ toolName: 'process_payment', state: 'succeeded' })
    const [asking, replying] = ofType(done, 'model')
    expect(asking?.usage?.totalTokens).toBeGreaterThan(0)
    const [turn] = ofType(done, 'turn')
    expect(turn).toMatchObject({ state: 'completed' })
    // One axis: each event is not earlier than the one before it.
    const axis = [
      message?.at,
      asking?.at,
      asking?.endedAt,
      approval?.at,
      approval?.votes[0]?.at,
      approval?.endedAt,
      run?.at,
      run?.endedAt,
      replying?.at,
      replying?.endedAt,
    ]
    expect(axis).toEqual(axis.toSorted((one, other) => Number(one) - Number(other)))
    expect(turn?.endedAt).toBeGreaterThanOrEqual(replying?.endedAt ?? Infinity)

    await testBridge.restart()
    expect((await read(testBridge.page())).body).toEqual({
      ...done,
      now: expect.any(Number) as number,
    })
    const { reader, ...same } = done
    expect(reader).toBe('hanako')
    expect(await testBridge.bridge.timeline({ principalId: 'hanako', chatId: 'chat-1' })).toEqual({
      ...same,
      now: expect.any(Number) as number,
    })
  })
})

test('[OB380] a model call is drawn from its request to its end, although ADK stores another time', async () => {
  await using testBridge = await TestBridge.open()
  const page = testBridge.page()
  const before = Date.now()
  const response = page.post(
    send('[[wait slow]][[call process_payment {"amount":1,"recipient":"A"}]]'),
  )
  await testBridge.untilAsked('slow')
  // The model takes its time. Nothing waits for this.
  await new Promise((resolve) => setTimeout(resolve, 80))
  testBridge.emulator.release('slow')
  await response
  const [model] = ofType((await read(page)).body, 'model')
  expect(model?.at).toBeGreaterThanOrEqual(before)
  expect(Number(model?.endedAt) - Number(model?.at)).toBeGreaterThanOrEqual(75)
  const [approval] = ofType((await read(page)).body, 'approval')
  expect(approval?.at).toBeGreaterThanOrEqual(Number(model?.endedAt) - 1)
})

test('[OB380] plugins of the application still receive the events of the model', async () => {
  const { BasePlugin } = await import('@google/adk')
  const seen: string[] = []
  class Watching extends BasePlugin {
    override async onEventCallback({ event }: { event: { author?: string } }): Promise<undefined> {
      seen.push(event.author ?? '')
    }
  }
  await using testBridge = await TestBridge.open({ plugins: [new Watching('watching')] })
  await testBridge.page().post(send('[[say Hello.]]'))
  expect(seen).toContain('assistant')
})

test('[OB380] a running turn shows what it waits for: the model, then a tool', async () => {
  const finished = defer()
  await using testBridge = await TestBridge.open({
    tools: () => [
      tool('look', async () => {
        await finished.promise
        return { seen: true }
      }),
    ],
  })
  const page = testBridge.page()
  const response = page.post(send('[[wait gate]][[call look {}]][[then]][[say Done.]]'))
  await testBridge.untilAsked('gate')
  const model = (await read(page)).body
  expect(model).toMatchObject({ running: true, waits: [{ for: 'model' }] })
  expect(model.why).toMatch(/^Waiting for the model since /)
  expect(ofType(model, 'model').at(-1)).not.toHaveProperty('endedAt')
  testBridge.emulator.release('gate')
  await expect
    .poll(async () => (await read(page)).body.waits, POLLING)
    .toMatchObject([{ for: 'tool', toolName: 'look' }])
  finished.resolve()
  await response
  await expect.poll(async () => (await read(page)).body.waits, POLLING).toEqual([])
  expect(ofType((await read(page)).body, 'tool')).toMatchObject([
    { toolName: 'look', state: 'succeeded', endedAt: expect.any(Number) as number },
  ])
})

test('[OB380] errors, interruptions, browser tools and hand-overs are entries', async () => {
  await using testBridge = await TestBridge.open({
    tools: () => [
      locate(true),
      locate(false),
      tool('fall', () => {
        throw new Error('password=hunter2')
      }),
    ],
    agent: (model, tools) =>
      assistant(model, { tools, subAgents: [assistant(model, { name: 'other' })] }),
  })
  const page = testBridge.page()
  await page.post(send('[[call locate {}]]', 'browser'))
  const offered = (await read(page, '', 'browser')).body
  expect(ofType(offered, 'browser-tool')).toMatchObject([{ toolName: 'locate', state: 'running' }])
  expect(offered.why).toBe('Waiting for a page to run locate. Open the chat in a browser.')

  await page.post(send('[[call gated_locate {}]]', 'gated'))
  const [asked] = await page.inbox()
  await page.decide(asked?.id ?? '', { approved: true })
  await expect
    .poll(async () => (await read(page, '', 'gated')).body.waits, POLLING)
    .toMatchObject([{ for: 'browser', toolName: 'gated_locate' }])
  const gated = (await read(page, '', 'gated')).body
  expect(ofType(gated, 'hand-over')).toMatchObject([{ to: 'browser' }])
  expect(ofType(gated, 'browser-tool')).toMatchObject([{ state: 'running' }])

  await page.post(send('[[error 400 INVALID_ARGUMENT no]]', 'error'))
  const failed = (await read(page, '', 'error')).body
  expect(ofType(failed, 'error')).toMatchObject([{ code: 'model-refused' }])
  expect(ofType(failed, 'turn')).toMatchObject([{ state: 'failed' }])

  await page.post(send('[[call fall {}]][[then]][[say Sorry.]]', 'fall'))
  const fallen = await read(page, '', 'fall')
  expect(ofType(fallen.body, 'tool')).toMatchObject([{ toolName: 'fall', state: 'failed' }])
  expect(JSON.stringify(fallen.body)).not.toContain('hunter2')

  const stopped = page.post(send('[[say Well…]][[wait never]][[say No.]]', 'stop'))
  await testBridge.untilAsked('never')
  await expect.poll(async () => (await read(page, '', 'stop')).body.running, POLLING).toBe(true)
  await page.fetch('http://page/chats/stop/stop', { method: 'POST' })
  await stopped
  const interrupted = (await read(page, '', 'stop')).body
  expect(ofType(interrupted, 'interruption')).toHaveLength(1)
  expect(ofType(interrupted, 'turn')).toMatchObject([{ state: 'stopped' }])

  await page.post(send('[[call transfer_to_agent {"agentName":"other"}]][[then]][[say Hi.]]', 'to'))
  const handed = (await read(page, '', 'to')).body
  expect(ofType(handed, 'hand-over')).toMatchObject([{ to: 'agent', name: 'other' }])
})

test('[OB380] another server shows the turn that a server runs', async () => {
  await using database = await createDatabase()
  await using pair = await openRelayPair(database, 'chat-1')
  const answer = await pair.atOne.begin('[[say One.]][[wait gate]][[say Two.]]')
  const at = async (person: typeof pair.atTwo) => {
    const { body } = await person.get('/chats/chat-1/timeline')
    return JSON.parse(body) as Timeline
  }
  await expect.poll(async () => (await at(pair.atTwo)).running, POLLING).toBe(true)
  expect(await at(pair.atTwo)).toMatchObject({ waits: [{ for: 'model' }] })
  pair.one.emulator.release('gate')
  await answer.text()
  await expect.poll(async () => (await at(pair.atTwo)).running, POLLING).toBe(false)
  expect({ ...(await at(pair.atTwo)), now: 0 }).toEqual({ ...(await at(pair.atOne)), now: 0 })
})

test('[OB380] the timeline shows what an agent does that is used as a tool', async () => {
  const respond = play({
    planner: [[ask('travel')], [say('All done.')]],
    travel: [[pay(5)], [say('Booked.')]],
  })
  await using testBridge = await TestBridge.open({ agent: nest, respond })
  const page = testBridge.page()
  await page.post(send('Go.'))
  const [approval] = await page.inbox()
  const waiting = await read(page)
  expect(ofType(waiting.body, 'model').map(({ agent }) => agent)).toEqual(['planner', 'travel'])
  expect(ofType(waiting.body, 'approval')).toMatchObject([{ toolName: 'process_payment' }])
  await page.decide(approval?.id ?? '', { approved: true })
  await page.untilMessages((messages) => JSON.stringify(messages).includes('All done.'))
  const { body } = await read(page)
  expect(ofType(body, 'model').map(({ agent }) => agent)).toEqual([
    'planner',
    'travel',
    'travel',
    'planner',
  ])
  expect(ofType(body, 'tool').map(({ toolName, state }) => [toolName, state])).toEqual([
    ['travel', 'succeeded'],
    ['process_payment', 'succeeded'],
  ])
})

test('[OB381] the owner reads a timeline; an operator reads it without what was said; others do not', async () => {
  await using testBridge = await TestBridge.open({
    ...TWO_PEOPLE,
    exposeState: (key) => key === 'shown',
  })
  const page = testBridge.page()
  await page.post(send(`[[say A secret.]]${callPayment(600)}`))
  const own = await read(page)
  expect(own.status).toBe(200)
  expect(own.body.state).toEqual({})
  const operator = await read(testBridge.page('mari'), '?principalId=hanako')
  expect(operator.body.waits).toMatchObject([{ for: 'approval', byReader: false }])
  expect(ofType(operator.body, 'message')[0]).not.toHaveProperty('text')
  expect(operator.body).not.toHaveProperty('state')
  expect((await read(testBridge.page('taro'), '?principalId=hanako')).status).toBe(403)
  // The same chat id names another chat, which does not exist.
  expect((await read(testBridge.page('taro'))).body).toMatchObject({ entries: [], waits: [] })
  expect((await fetch(`${testBridge.url}/chats/chat-1/timeline`)).status).toBe(401)
})

test('[OB382] a timeline is read in pages of turns, newest first, and its texts are bounded', async () => {
  await using testBridge = await TestBridge.open({
    tools: (wallet) => [paymentTool(wallet, { gated: false })],
  })
  const page = testBridge.page()
  for (const text of ['one', 'two', 'three'])
    await page.post(send(`[[say ${text}]]${'x'.repeat(1_000)}`))
  const texts = ({ body }: { body: Timeline }) =>
    ofType(body, 'message').map(({ text = '' }) => text.slice(6, 9))
  const newest = await read(page, '?limit=2')
  expect(texts(newest)).toEqual(['two', 'thr'])
  const oldest = await read(page, `?limit=2&before=${newest.body.next}`)
  expect(texts(oldest)).toEqual(['one'])
  expect(oldest.body.next).toBeUndefined()
  expect(ofType(newest.body, 'message')[0]?.text).toHaveLength(201)
  for (const query of ['?limit=0', '?limit=101', '?before=none', '?colour=red'])
    expect((await read(page, query)).status).toBe(400)

  await page.post(send(callPayment(1, 'y'.repeat(5_000)), 'long'))
  const [call] = ofType((await read(page, '', 'long')).body, 'tool')
  expect(JSON.stringify(call?.args).length).toBeLessThan(2_100)
})

describe('why a chat waits', () => {
  const call = { toolCallId: 'k', toolName: 'pay', args: { to: 'Bob' }, messageId: 'm', since: 0 }
  const asked = {
    for: 'approval',
    ...call,
    approvalId: 'a',
    deadline: Date.UTC(2026, 10, 16, 17, 16),
    given: 0,
    needed: 1,
    approvers: { principals: ['hanako'], roles: [] },
    approvedBy: [],
    byReader: true,
    votedByReader: false,
  } as const satisfies TimelineWait

  test.each<[TimelineWait[], string]>([
    [[], 'Idle: waiting for a message.'],
    [[asked], 'Waiting for hanako for pay (to: Bob); expires at 2026-11-16 17:16 UTC.'],
    [
      [{ ...asked, needed: 2, approvers: { principals: ['a', 'b'], roles: ['boss'] } }],
      'Waiting for a or b or the role boss for pay (to: Bob): 0 of 2 have approved; expires at 2026-11-16 17:16 UTC.',
    ],
    [
      [{ ...asked, title: 'Payment', given: 1, needed: 2, approvedBy: ['ann'] }, asked],
      'Waiting for a second approver for Payment (to: Bob): 1 of 2 has approved (ann); expires at 2026-11-16 17:16 UTC. Who may approve: hanako. 1 more in this chat.',
    ],
    [
      [{ for: 'start', ...call }],
      'pay (to: Bob) is approved and waits for a server to start it. It starts when a server with this agent is running and the chat is free.',
    ],
    [
      [{ for: 'tool', ...call }],
      'Waiting for the tool pay (to: Bob), which has been running since 1970-01-01 00:00 UTC.',
    ],
    [
      [{ for: 'application', ...call }],
      'Waiting for the application to complete pay (to: Bob) with completeCall.',
    ],
  ])('[OB383] %#', (waits, sentence) => {
    expect(describeWaits(waits)).toBe(sentence)
  })
})

describe('the record of an approval', () => {
  const requested = {
    type: 'requested',
    messageId: 'm',
    toolCallId: 'k',
    toolName: 'pay',
    args: {},
    digest: '',
    terms: { chain: [{ count: 2, principals: ['a', 'b'], roles: [] }], idempotent: false },
    deadline: 99,
  } as const satisfies AuditEvent

  test.each<[string, AuditEvent[], object]>([
    ['a vote', [{ type: 'voted', by: 'a', step: 0 }], { given: 1, state: 'requested' }],
    [
      'a withdrawn vote',
      [
        { type: 'voted', by: 'a', step: 0 },
        { type: 'withdrawn', by: 'a', step: 0, dropped: [] },
      ],
      { given: 0, votes: [{ by: 'a', at: 1, withdrawnAt: 2 }] },
    ],
    [
      'a denial',
      [{ type: 'denied', by: 'b', step: 0, reason: 'No.' }],
      { state: 'denied', endedAt: 1, decision: { by: 'b', reason: 'No.' } },
    ],
    ['an expiry', [{ type: 'expired' }], { state: 'expired', endedAt: 1 }],
    [
      'a call of a crashed server',
      [
        { type: 'approved', by: 'a', step: 0 },
        { type: 'started', worker: 'w', args: {} },
        { type: 'lost', worker: 'w', becomes: 'unknown' },
      ],
      { state: 'unknown', startedAt: 2, finishedAt: 3 },
    ],
    [
      'a call that starts again',
      [
        { type: 'approved', by: 'a', step: 0 },
        { type: 'started', worker: 'w', args: {} },
        { type: 'lost', worker: 'w', becomes: 'approved' },
        { type: 'started', worker: 'v', args: {} },
      ],
      { state: 'executing', startedAt: 4 },
    ],
  ])('[OB380] %s', (_name, events, expected) => {
    expect(readApprovals(recordsOf(requested, ...events))).toMatchObject([expected])
  })

  test('[OB380] an approval whose request was removed by retention is left out', () => {
    expect(readApprovals(recordsOf({ type: 'expired' }))).toEqual([])
  })
})
