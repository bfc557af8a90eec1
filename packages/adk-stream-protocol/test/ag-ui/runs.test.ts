import {
  AgentTool,
  type Context,
  FunctionTool,
  LlmAgent,
  LongRunningFunctionTool,
  requestInputTool,
} from '@google/adk'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { z } from 'zod'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import type { ApprovalPolicy, CallAddress } from '../../src/server/index.ts'
import { callAddress } from '../../src/server/index.ts'
import { stockClient } from '../approvals/support/approving-chat.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import type { ChatMessage } from '../support/chat-probe.ts'
import { locationTool, musicTool, TOKYO } from '../support/locating.ts'
import { AG_UI_VERSIONS, AgUiClient } from './support/ag-ui-client.ts'

let testBridge: TestBridge

const weather = new FunctionTool({
  name: 'get_weather',
  description: 'The weather.',
  parameters: z.object({ city: z.string() }),
  execute: ({ city }) => ({ city, sky: 'clear' }),
})

const remember = new FunctionTool({
  name: 'remember',
  description: 'Puts a value into the session state.',
  parameters: z.object({ key: z.string(), value: z.string() }),
  execute: ({ key, value }, context?: Context) => {
    context?.state.set(key, value)
    return 'Remembered.'
  },
})

const book = new FunctionTool({
  name: 'book_flight',
  description: 'Books a flight.',
  requireConfirmation: true,
  parameters: z.object({ to: z.string() }),
  execute: ({ to }) => ({ booked: to }),
})

const FAILED = { error: expect.any(String) as string }

const TICKET = { status: 'pending', ticket: 'T-1' }

/** The calls of `run_report`, which the application completes, by their chat. */
const reports = new Map<string, CallAddress>()

const report = new LongRunningFunctionTool({
  name: 'run_report',
  description: 'Begins a report that takes hours.',
  parameters: z.object({ returns: z.enum(['nothing', 'a ticket', 'an error']) }),
  execute: ({ returns }, context) => {
    const address = context && callAddress(context)
    if (address) reports.set(address.chatId, address)
    if (returns === 'an error') throw new Error('The queue does not answer.')
    return returns === 'a ticket' ? TICKET : undefined
  },
})

const order = new FunctionTool({
  name: 'order',
  description: 'Orders something.',
  execute: () => ({ status: 'pending', note: 'The shop has the order.' }),
})

/** The policy, by the recipient of a payment. */
const approvals: ApprovalPolicy = {
  process_payment: ({ args: { recipient } }) => {
    if (recipient === 'for a manager') return { deciders: { roles: ['manager'] } }
    return recipient === 'soon' ? { deadlineMs: 300 } : true
  },
}

beforeAll(async () => {
  testBridge = await TestBridge.open({
    isLive: false,
    approvals,
    exposeState: (key) => key === 'cart',
    agent: (model, tools) => {
      const travel = new LlmAgent({ name: 'travel', model, description: 'Books.', tools: [book] })
      return new LlmAgent({
        name: 'root',
        model,
        tools: [...tools, new AgentTool({ agent: travel })],
      })
    },
    tools: (wallet) => [
      paymentTool(wallet),
      weather,
      remember,
      report,
      order,
      musicTool(),
      locationTool({ gated: true }),
      requestInputTool,
    ],
  })
})

afterAll(() => testBridge[Symbol.asyncDispose]())

const APPROVED = { approved: true }

/** A reload shows what the client has, and asks what it asks. */
async function expectSameAfterReload(client: AgUiClient): Promise<void> {
  const loaded = await client.reload()
  expect(loaded.messages).toEqual(client.messages)
  expect(loaded.pending).toEqual(client.pending)
}

/** The first interrupt of a client. */
const firstId = ({ pending }: AgUiClient): string => pending[0]?.id ?? ''

const countPaid = (recipient: string): number =>
  testBridge.wallet.payments.filter((payment) => payment.recipient === recipient).length

const set = (key: string, value: string): string =>
  `[[call remember {"key":"${key}","value":"${value}"}]]`

describe.each(AG_UI_VERSIONS)('$name', (version) => {
  const it = takeTurns({ group: AG_UI_VERSIONS.indexOf(version), groups: AG_UI_VERSIONS.length })
  const open = (options: { person?: string; threadId?: string } = {}): AgUiClient =>
    new AgUiClient(version, { url: testBridge.url, ...options })
  const isVersioned = version.name.endsWith('1.0.0')

  it('[AG1380] [AG1382] [AG1395] text and calls are events, and a reload shows the same', async () => {
    const client = open()
    const events = await client.say(
      '[[say Looking.]] [[call get_weather {"city":"Tokyo"}]] [[then]] [[say It is clear.]]',
    )
    expect(client.text).toEqual(['Looking.', 'It is clear.'])
    expect(client.results).toEqual([{ city: 'Tokyo', sky: 'clear' }])
    expect(client.types[0]).toBe('RUN_STARTED')
    const usage = [{ provider: 'google', totalTokens: expect.any(Number) as number }]
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', usage })
    await expectSameAfterReload(client)
  })

  it('[AG1380] [AG1382] thoughts, files, sources and code are reasoning and activities', async () => {
    const client = open()
    await client.say(
      '[[think Let me see.]] [[image red]] [[code print(6*7) => 42]] [[say Done.]] [[ground https://example.com Title]]',
    )
    const activities = client.messages.flatMap(({ activityType }) => activityType ?? [])
    expect(activities).toEqual(
      expect.arrayContaining(['adk-file', 'adk-executable-code', 'adk-source-url']),
    )
    await expectSameAfterReload(client)
  })

  it('[AG1380] a run has the headers of a stream, and not that of the AI SDK', async () => {
    const { threadId } = open()
    const messages = [{ id: 'u1', role: 'user', content: '[[say Hello.]]' }]
    for (const path of ['/ag-ui', '/ag-ui/agent/default/connect']) {
      const { headers } = await post({ threadId, runId: 'r', messages }, path)
      expect(headers).toMatchObject({
        'content-type': 'text/event-stream',
        'cache-control': 'no-cache',
      })
      expect(headers).not.toHaveProperty('x-vercel-ai-ui-message-stream')
    }
  })

  it('[AG1381] only a client that declares a version gets what 1.0 has added', async () => {
    const client = open()
    const [started, ...rest] = await client.say('[[say Hello.]]')
    expect(started).toEqual({
      type: 'RUN_STARTED',
      threadId: client.threadId,
      runId: expect.any(String) as string,
      ...(isVersioned && { protocolVersion: '1.0' }),
    })
    expect(rest.at(-1)?.['outcome']).toEqual(isVersioned ? { type: 'success' } : undefined)
    await client.say(callPayment(1, 'Alice'))
    expect(client.pending[0]?.expiresAt !== undefined).toBe(isVersioned)
  })

  it('[AG1383] [AG1382] an approved call runs once, and a reload shows the same', async () => {
    const client = open()
    const recipient = `approved ${version.name}`
    await client.say(`${callPayment(5, recipient)}[[then]][[say Paid.]]`)
    expect(client.pending).toMatchObject([
      {
        reason: 'tool_call',
        toolCallId: client.messages.find((m) => m.toolCalls)?.toolCalls?.[0]?.id,
      },
    ])
    await expectSameAfterReload(client)
    expect(countPaid(recipient)).toBe(0)
    const events = await client.answer({ [firstId(client)]: APPROVED })
    expect(countPaid(recipient)).toBe(1)
    expect(client.pending).toEqual([])
    expect(client.text).toEqual(['Paid.'])
    expect(client.results).toMatchObject([{ success: true, amount: 5 }])
    expect(events[1]?.type).toBe('MESSAGES_SNAPSHOT')
    await expectSameAfterReload(client)
  })

  it('[AG1395] a resumed run reports its own usage', async () => {
    const client = open()
    const total = (): number => {
      const [usage] = (client.events.at(-1)?.['usage'] ?? []) as { totalTokens: number }[]
      return usage?.totalTokens ?? 0
    }
    await client.say(`${callPayment(1, 'Alice')}[[then]][[say Paid.]]`)
    const first = total()
    await client.answer({ [firstId(client)]: APPROVED })
    const second = total()
    const page = testBridge.page()
    const message = (await page.messages(client.threadId)).at(-1)
    const { usage } = (message?.metadata ?? {}) as { usage?: { totalTokens: number } }
    expect(first > 0 && second > 0).toBe(true)
    expect(first + second).toBe(usage?.totalTokens)
  })

  it('[AG1383] a denial with a reason, edited arguments, and two calls at once', async () => {
    const client = open()
    await client.say(`${callPayment(5, 'B')}[[then]][[say Not paid.]]`)
    await client.answer({ [firstId(client)]: { approved: false, reason: 'too much' } })
    expect(client.results).toEqual([{ status: 'denied', reason: 'too much' }])
    await expectSameAfterReload(client)
    await client.say(`${callPayment(500, 'C')}[[then]][[say Done.]]`)
    const schema = { properties: { editedArgs: { properties: { amount: {} } } } }
    expect(client.pending).toMatchObject([{ responseSchema: schema }])
    const editedArgs = { amount: 5, recipient: 'C' }
    await client.answer({ [firstId(client)]: { approved: true, editedArgs } })
    expect(client.results.at(-1)).toMatchObject({ amount: 5, recipient: 'C' })
    await client.say(`${callPayment(1, 'D')}${callPayment(2, 'E')}[[then]][[say Both.]]`)
    const [one, other] = client.pending.map(({ id }) => id)
    await client.answer({ [one ?? '']: true, [other ?? '']: 'cancelled' })
    expect(client.results.slice(2)).toMatchObject([
      { success: true, recipient: 'D' },
      { status: 'denied', reason: 'Cancelled by the person.' },
    ])
    expect(client.text).toEqual(['Not paid.', 'Done.', 'Both.'])
    await expectSameAfterReload(client)
  })

  it('[AG1383] [AG1388] a call inside an agent that is used as a tool, with one result each', async () => {
    const client = open()
    const inner = '[[call book_flight {\\"to\\":\\"Kyoto\\"}]] [[then]] [[say Booked it.]]'
    await client.say(`[[call travel {"request":"${inner}"}]] [[then]] [[say Your trip is booked.]]`)
    expect(client.pending).toMatchObject([{ metadata: { adk: { path: ['root', 'travel'] } } }])
    await expectSameAfterReload(client)
    await client.answer({ [firstId(client)]: APPROVED })
    expect(client.pending).toEqual([])
    const ids = client.messages.flatMap(({ role, toolCallId }) =>
      role === 'tool' ? toolCallId : [],
    )
    expect(new Set(ids).size).toBe(2)
    expect(ids.length).toBe(2)
    expect(client.text).toEqual(['Your trip is booked.'])
    await expectSameAfterReload(client)
  })

  it('[AG1388] a result that looks preliminary and is not is a result', async () => {
    const client = open()
    await client.say('[[call order {}]] [[then]] [[say Ordered.]]')
    expect(client.results).toEqual([{ status: 'pending', note: 'The shop has the order.' }])
    await expectSameAfterReload(client)
  })

  it.each([
    ['nothing', [], []],
    ['a ticket', [TICKET], []],
    ['an error', [], [FAILED]],
  ])(
    '[AG1388] [AG1382] a call that returned %s has its final result in the run that carries it, and after a reload',
    async (returns, preliminary, results) => {
      const client = open()
      const gate = isVersioned ? 'report-1' : 'report-0'
      // The model is called again when the tool has returned nothing only after the completion.
      const wait = returns === 'nothing' ? `[[wait ${gate}]]` : ''
      const later = returns === 'nothing' ? '' : `[[then]][[wait ${gate}]][[say Well.]]`
      const call = `[[call run_report {"returns":"${returns}"}]]`
      await client.say(`${call}[[then]][[say Noted.]]${wait}[[say Well.]]${later}`)
      expect(client.results).toEqual(results)
      const shown = client.messages.flatMap(({ role, content }) =>
        role === 'activity' ? [(content as { output: unknown }).output] : [],
      )
      expect(shown).toEqual(preliminary)
      await expectSameAfterReload(client)
      const address = reports.get(client.threadId)
      if (!address) throw new Error('The tool was not called.')
      await testBridge.bridge.completeCall({ ...address, output: { report: 'Up.' } })
      const run = client.run()
      testBridge.emulator.release(gate)
      await run
      expect(client.results).toEqual([{ report: 'Up.' }])
      expect((await client.reload()).byId).toEqual(client.byId)
    },
  )

  it('[AG1383] [AG1389] a question has a schema, and a wrong answer keeps it open', async () => {
    const client = open()
    const schema =
      '{"type":"object","properties":{"nights":{"type":"integer"}},"required":["nights"]}'
    const ask = `[[call adk_request_input {"message":"How many?","response_schema":${schema}}]]`
    await client.say(`${ask}[[then]][[say Booked.]]`)
    expect(client.pending).toMatchObject([
      { reason: 'input_required', responseSchema: JSON.parse(schema) as unknown },
    ])
    await client.answer({ [firstId(client)]: { nights: 'two' } })
    expect(client.refused).toEqual(['invalid-answer'])
    expect(client.pending).toMatchObject([
      { message: expect.stringContaining('How many?') as string },
    ])
    await client.answer({ [firstId(client)]: { nights: 2 } })
    expect(client.pending).toEqual([])
    expect(client.text).toEqual(['Booked.'])
    await expectSameAfterReload(client)
  })

  it('[AG1391] a tool of the page is shown at the end of a run, and its result continues the turn', async () => {
    const client = open()
    const events = await client.say('[[call change_bgm {"track":2}]] [[then]] [[say Enjoy.]]')
    expect(client.calls).toEqual(['change_bgm'])
    const [call] = client.messages.flatMap(({ toolCalls = [] }) => toolCalls)
    const pendingToolCallIds = [call?.id]
    expect(events.at(-1)?.['outcome']).toEqual(
      isVersioned ? { type: 'success', pendingToolCallIds } : undefined,
    )
    await expectSameAfterReload(client)
    sendResult(client, call?.id, '{"success":true,"track":2}')
    await client.run()
    expect(client.text).toEqual(['Enjoy.'])
    expect(client.results).toEqual([{ success: true, track: 2 }])
    await expectSameAfterReload(client)
  })

  it('[AG1385] a tool of the page that needs approval is not shown before it is approved', async () => {
    const client = open()
    await client.say('[[call get_location {}]] [[then]] [[say You are here.]]')
    expect(client.calls).toEqual([])
    expect(JSON.stringify(client.events)).not.toContain('TOOL_CALL')
    expect(client.pending).toMatchObject([{ reason: 'adk:page_tool' }])
    expect(client.pending[0]?.toolCallId).toBeUndefined()
    expect((await client.reload()).calls).toEqual([])
    await client.answer({ [firstId(client)]: APPROVED })
    expect([client.calls, client.pending]).toEqual([['get_location'], []])
    const [call] = client.messages.flatMap(({ toolCalls = [] }) => toolCalls)
    sendResult(client, call?.id, JSON.stringify(TOKYO))
    await client.run()
    expect(client.text).toEqual(['You are here.'])
    await expectSameAfterReload(client)
  })

  it('[AG1385] a denied tool of the page is shown with its end', async () => {
    const client = open()
    await client.say('[[call get_location {}]] [[then]] [[say Then not.]]')
    await client.answer({ [firstId(client)]: false })
    expect(client.results).toEqual([{ status: 'denied' }])
    expect(client.calls).toEqual(['get_location'])
    await expectSameAfterReload(client)
  })

  it('[AG1386] a tool of the page is shown only by a run that asks nothing', async () => {
    const client = open()
    await client.say(`${callPayment(1, 'F')}[[call change_bgm {"track":3}]][[then]][[say Both.]]`)
    expect(client.calls).toEqual(['process_payment'])
    await client.answer({ [firstId(client)]: APPROVED })
    expect(client.calls).toEqual(['process_payment', 'change_bgm'])
    const call = client.messages.flatMap(({ toolCalls = [] }) => toolCalls).at(-1)
    sendResult(client, call?.id, '{"success":true,"track":3}')
    await client.run()
    expect(client.text).toEqual(['Both.'])
    await expectSameAfterReload(client)
  })

  it('[AG1387] after a failed model the answer counts, and the next message is answered', async () => {
    const client = open()
    await client.say(`${callPayment(1, 'G')}[[then]][[fail 503 overloaded]]`)
    await client.answer({ [firstId(client)]: APPROVED })
    expect(client.types.slice(-2)).toEqual(['RUN_FINISHED', 'RUN_ERROR'])
    expect(client.pending).toEqual([])
    await client.say('[[say Still here.]]')
    expect(client.text).toEqual(['Still here.'])
    await client.say('[[fail 503 overloaded]]')
    expect(client.types).not.toContain('RUN_FINISHED')
    expect(client.types.at(-1)).toBe('RUN_ERROR')
  })

  it('[AG1389] answers to something that has ended show the outcome, and block nothing', async () => {
    const client = open()
    const recipient = `ended ${version.name}`
    await client.say(`${callPayment(1, recipient)}[[then]][[say Not paid.]]`)
    const id = firstId(client)
    const page = testBridge.page()
    await page.decide(id, { approved: false })
    await untilSaid(client, 'Not paid.')
    await client.answer({ [id]: APPROVED })
    expect(client.refused).toEqual(['approval-decided'])
    expect([client.pending, client.results]).toEqual([[], [{ status: 'denied' }]])
    await client.answer({ 'never-asked': APPROVED })
    expect(client.refused).toEqual(['unknown-approval'])
    await client.say('[[say Go on.]]')
    expect(client.text).toEqual(['Not paid.', 'Go on.'])
    expect(countPaid(recipient)).toBe(0)
  })

  it('[AG1389] an answer that is no decision, or that belongs to another thread, changes nothing, and says why', async () => {
    const client = open()
    await client.say(`${callPayment(1, 'H')}[[then]][[say Paid.]]`)
    const id = firstId(client)
    const other = open()
    await other.say('[[say Hello.]]')
    await other.answer({ [id]: APPROVED })
    expect([other.refused, other.pending]).toEqual([['unknown-approval'], []])
    await client.answer({ [id]: { yes: 1 } })
    expect(client.refused).toEqual(['bad-request'])
    expect(client.pending).toMatchObject([
      { id, message: expect.stringContaining('"approved"') as string },
    ])
    await client.answer({ [id]: { approved: true, editedArgs: { amount: 'x' } } })
    expect(client.pending).toMatchObject([{ id }])
    await client.answer({ [id]: APPROVED })
    expect(client.text).toEqual(['Paid.'])
  })

  it('[AG1389] an approval that expires does not block the page', async () => {
    const client = open()
    await client.say(`${callPayment(1, 'soon')}[[then]][[say Too late.]]`)
    await untilSaid(client, 'Too late.')
    const loaded = await client.reload()
    expect([loaded.pending, loaded.text]).toEqual([[], ['Too late.']])
    const next = open({ threadId: client.threadId })
    await next.say('[[say Next.]]')
    expect(next.text).toEqual(['Next.'])
  })

  it('[AG1389] the same answer from three pages at once runs the call once', async () => {
    const client = open()
    const recipient = `thrice ${version.name}`
    await client.say(`${callPayment(1, recipient)}[[then]][[say Paid.]]`)
    const id = firstId(client)
    const pages = [client, ...(await Promise.all([client.reload(), client.reload()]))]
    const body = { threadId: client.threadId, runId: 'r', messages: client.messages }
    const resume = [{ interruptId: id, status: 'resolved', payload: APPROVED }]
    const runs = await Promise.all(pages.map(() => post({ ...body, resume })))
    expect(runs.map(({ status }) => status)).toEqual([200, 200, 200])
    await client.answer({ [id]: APPROVED })
    expect(countPaid(recipient)).toBe(1)
    expect(client.results.length).toBe(1)
    expect((await client.reload()).byId).toEqual(client.byId)
  })

  it('[AG1384] what waits for somebody else is no interrupt, and the page can go on', async () => {
    const client = open()
    await client.say(`${callPayment(1, 'for a manager')}[[then]][[say Paid.]]`)
    expect(client.pending).toEqual([])
    expect(client.calls).toEqual(['process_payment'])
    await client.say('[[say Meanwhile.]]')
    expect(client.text).toEqual(['Meanwhile.'])
    const manager = testBridge.page('mari')
    const [waiting] = (await manager.inbox()).toReversed()
    await manager.decide(waiting?.id ?? '', APPROVED)
    await untilSaid(client, 'Paid.')
    expect((await client.reload()).text).toEqual(['Paid.', 'Meanwhile.'])
  })

  it('[AG1383] a page of the AI SDK decides what an AG-UI page asks, and the other way round', async () => {
    const client = open()
    await client.say(`${callPayment(1, 'I')}[[then]][[say First.]]`)
    const page = testBridge.page()
    const chat = await page.open(stockClient('7'), { id: client.threadId })
    await chat.decide(true)
    const loaded = await client.reload()
    expect([loaded.text, loaded.pending]).toEqual([['First.'], []])
    await chat.send(`${callPayment(1, 'J')}[[then]][[say Second.]]`)
    const again = await client.reload()
    const answering = open({ threadId: client.threadId })
    await answering.answer({ [firstId(again)]: APPROVED })
    expect(answering.text).toEqual(['First.', 'Second.'])
  })

  it('[AG1394] a stranger with the thread id gets nothing and decides nothing', async () => {
    const client = open()
    const recipient = `stranger ${version.name}`
    await client.say(`${callPayment(1, recipient)}[[then]][[say Paid.]]`)
    const stranger = new AgUiClient(version, {
      url: testBridge.url,
      threadId: client.threadId,
      person: 'taro',
    })
    const loaded = await stranger.reload()
    expect([loaded.messages, loaded.events]).toEqual([[], []])
    const resume = [{ interruptId: firstId(client), status: 'resolved', payload: APPROVED }]
    await expect(stranger.run({ resume })).rejects.toThrow('409')
    await stranger.say('[[say Hello.]]')
    await stranger.answer({ [firstId(client)]: APPROVED })
    expect(stranger.refused).toEqual(['unknown-approval'])
    expect(countPaid(recipient)).toBe(0)
  })

  it('[AG1392] a run that lost its connection continues with the next run', async () => {
    const client = open()
    const gate = isVersioned ? 'lost-1' : 'lost-0'
    const said = client.say(`[[say One.]][[wait ${gate}]][[say Two.]]`)
    await expect.poll(() => client.text.join('')).toContain('One.')
    client.agent.abortRun()
    await said.catch(() => undefined)
    const again = client.run()
    testBridge.emulator.release(gate)
    await again
    expect(client.text.join('')).toBe('One.Two.')
    await expectSameAfterReload(client)
  })

  it('[AG1396] exposed state is a snapshot and patches', async () => {
    const client = open()
    await client.say(`${set('cart', 'a')}[[then]]${set('cart', 'b')}[[then]][[say Done.]]`)
    expect(client.agent.state).toEqual({ cart: 'b' })
    await client.say(`${set('secret', 's')}[[then]][[say Done.]]`)
    expect(JSON.stringify(client.events)).not.toContain('STATE_')
    expect((await client.reload()).agent.state).toEqual({ cart: 'b' })
  })

  it('[AG1397] with `regenerate`, the newest message is answered again', async () => {
    const client = open()
    await client.say('[[say Hello.]]', 'u1')
    const [message] = client.messages
    if (!message) throw new Error('no message')
    client.agent.setMessages([message])
    await client.run({ forwardedProps: { regenerate: true } })
    expect(client.text).toEqual(['Hello.'])
    await expectSameAfterReload(client)
  })
})

/** Resolves when the agent has said a text, in a turn that no page reads. */
async function untilSaid({ threadId }: AgUiClient, text: string): Promise<void> {
  const isSaid = ({ role, parts }: ChatMessage): boolean =>
    role === 'assistant' && parts.some((part) => 'text' in part && part.text === text)
  await testBridge.page().untilMessages((messages) => messages.some(isSaid), threadId)
}

function sendResult(client: AgUiClient, toolCallId: string | undefined, content: string): void {
  const result = { id: crypto.randomUUID(), role: 'tool', toolCallId: toolCallId ?? '', content }
  client.agent.setMessages([...client.messages, result])
}

async function post(body: unknown, path = '/ag-ui', person = 'hanako') {
  const response = await fetch(`${testBridge.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': person },
    body: JSON.stringify(body),
  })
  const { status, headers } = response
  return { status, text: await response.text(), headers: Object.fromEntries(headers) }
}
