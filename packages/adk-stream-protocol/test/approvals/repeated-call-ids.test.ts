// oxlint-disable typescript/no-deprecated -- ParallelAgent is deprecated in favour of Workflow, and in use.
import {
  AgentTool,
  BaseLlm,
  LlmAgent,
  type LlmRequest,
  type LlmResponse,
  ParallelAgent,
} from '@google/adk'
import type { Content, FunctionCall } from '@google/genai'
import { expect, test } from 'vitest'

import { assistant, tool } from '../support/agents.ts'
import { toolParts } from '../support/chat-probe.ts'
import { serve } from '../support/serve.ts'

/** A model that makes the given calls for a message that starts with "Pay". */
class OddModel extends BaseLlm {
  last: readonly Content[] = []
  readonly #calls: readonly FunctionCall[]

  constructor(calls: readonly FunctionCall[]) {
    super({ model: 'odd' })
    this.#calls = calls
  }

  override async *generateContentAsync(request: LlmRequest): AsyncGenerator<LlmResponse, void> {
    this.last = structuredClone(request.contents)
    const isRequest = JSON.stringify(request.contents.at(-1)).includes('"Pay')
    const calls = this.#calls.map((call) => ({ functionCall: { ...call } }))
    yield { content: { role: 'model', parts: isRequest ? calls : [{ text: 'Done.' }] } }
  }

  override connect(): Promise<never> {
    return Promise.reject(new Error('not live'))
  }

  /** The ids and names of calls and responses in the history, in their order. */
  get history() {
    const parts = this.last.flatMap((content) => content.parts ?? [])
    return {
      calls: parts.flatMap(({ functionCall }) => functionCall ?? []).map(toPair),
      responses: parts.flatMap(({ functionResponse }) => functionResponse ?? []).map(toPair),
    }
  }
}

function toPair({ id, name }: { readonly id?: string; readonly name?: string }) {
  return [id, name]
}

const TWICE = [1, 2].map((amount) => ({ id: 'call-1', name: 'pay', args: { amount } }))

test.each([
  ['with', true, TWICE, 2],
  ['without', false, TWICE, 2],
  ['without a name and without', false, [{ id: 'call-1', args: {} }], 1],
])(
  '[AP143] calls with one id %s approval (%s) are shown and answered one by one',
  async (_what, isGated, calls, count) => {
    const model = new OddModel(calls)
    const paid: unknown[] = []
    await using server = await serve({
      agent: () => assistant(model, { tools: [tool('pay', (args) => ({ n: paid.push(args) }))] }),
      ...(isGated && { approvals: { pay: true } }),
      authenticate: () => ({ id: 'hanako' }),
    })
    const browser = server.browser()
    const text = await (await browser.say('Pay')).text()
    expect(text.match(/"tool-input-available"/g)).toHaveLength(count)
    expect(text.match(/"tool-approval-request"/g) ?? []).toHaveLength(isGated ? count : 0)
    expect(paid).toHaveLength(isGated || count === 1 ? 0 : count)
    expect(await (await browser.say('Hello')).text()).toContain('Done.')
    const { history } = model
    expect(history.calls).toHaveLength(count)
    expect(history.responses).toEqual(history.calls)
    expect(new Set(history.calls.map(([id]) => id)).size).toBe(count)
    expect(history.calls.every(([, name]) => name !== undefined)).toBe(true)
  },
)

test.each([
  ['parts', { name: 'pay', partialArgs: [{ jsonPath: '$.amount', numberValue: 1 }] }],
  ['a part that continues', { name: 'pay', args: {}, willContinue: true }],
])('[AP1001] a call with arguments in %s does not run', async (_what, call) => {
  const model = new OddModel([call])
  let ran = 0
  await using server = await serve({
    agent: () => assistant(model, { tools: [tool('pay', () => ({ n: (ran += 1) }))] }),
  })
  const browser = server.browser()
  const text = await (await browser.say('Pay')).text()
  expect(text).toContain('"type":"error"')
  expect(ran).toBe(0)
  expect(String(server.errors[0])).toContain('Do not set `streamFunctionCallArguments`')
  expect(await (await browser.say('Go on.')).text()).toContain('Done.')
})

test('[AP1001] createBridge refuses an agent whose model may stream arguments in parts', async () => {
  const toolConfig = { functionCallingConfig: { streamFunctionCallArguments: true } }
  const inner = assistant(new OddModel([]), {
    name: 'inner',
    generateContentConfig: { toolConfig },
  })
  const outer = assistant(new OddModel([]), { subAgents: [inner] })
  await expect(serve({ agent: () => outer })).rejects.toThrow(
    'createBridge: the agent inner sets `streamFunctionCallArguments`',
  )
})

/** A model that calls `pay` for each message that starts with "Pay", always under one id, with these amounts. */
class RepeatingModel extends BaseLlm {
  readonly #amounts: number[]

  constructor(...amounts: number[]) {
    super({ model: 'repeating' })
    this.#amounts = amounts
  }

  override async *generateContentAsync({
    contents,
  }: LlmRequest): AsyncGenerator<LlmResponse, void> {
    const isRequest = JSON.stringify(contents.at(-1)).includes('"Pay')
    const args = { amount: isRequest ? this.#amounts.shift() : 0 }
    const call = { functionCall: { id: 'call-1', name: 'pay', args } }
    yield { content: { role: 'model', parts: [isRequest ? call : { text: 'Done.' }] } }
  }

  override connect(): Promise<never> {
    return Promise.reject(new Error('not live'))
  }
}

const DECISIONS = [
  [true, true],
  [true, false],
  [false, true],
]

test.each([
  ...DECISIONS.map((decisions) => ({ when: 'later', amounts: [1, 2], decisions })),
  ...DECISIONS.map((decisions) => ({ when: 'later', amounts: [1, 1], decisions })),
  { when: 'before the next call', amounts: [1, 2], decisions: [true, true] },
  { when: 'before the next call', amounts: [1, 1], decisions: [false, true] },
])(
  '[AP143] calls of several messages with one id are several calls: $amounts, decided $decisions $when',
  async ({ when, amounts, decisions }) => {
    const paid: unknown[] = []
    const pay = tool('pay', (args) => ({ n: paid.push(args) }))
    await using server = await serve({
      agent: () => assistant(new RepeatingModel(...amounts), { tools: [pay] }),
      approvals: { pay: true },
      authenticate: () => ({ id: 'hanako' }),
    })
    const browser = server.browser()
    const ids: string[] = []
    const ask = async (text: string): Promise<void> => {
      const [, id = ''] =
        /"approvalId":"([^"]+)"/.exec(await (await browser.say(text)).text()) ?? []
      ids.push(id)
    }
    const decide = async (index: number): Promise<void> => {
      const approved = decisions[index]
      const url = `/approvals/${ids[index]}`
      expect((await browser.post(url, { approved })).status).toBe(200)
      await expect
        .poll(async () => JSON.stringify(await (await browser.get(url)).json()), POLL)
        .toContain(approved ? '"state":"succeeded"' : '"state":"denied"')
      // The turn that continues after the decision ends.
      await expect.poll(async () => (await browser.messages()).running, POLL).toBe(false)
    }
    await ask('Pay one')
    if (when !== 'later') await decide(0)
    await ask('Pay two')
    if (when === 'later') await decide(0)
    await decide(1)
    expect(new Set(ids).size).toBe(2)
    expect(paid).toEqual(
      amounts.filter((_amount, index) => decisions[index]).map((amount) => ({ amount })),
    )
    const { messages } = await browser.messages()
    const states = messages.flatMap(toolParts).map(({ state }) => state)
    expect(states).toEqual(decisions.map((is) => (is ? 'output-available' : 'output-denied')))
    expect(await (await browser.say('Hello')).text()).toContain('Done.')
  },
)

const POLL = { timeout: 30_000 }

test('[AP143] calls of agents that run in parallel with one id are several calls', async () => {
  const paid: unknown[] = []
  const pay = tool('pay', (args) => ({ n: paid.push(args) }))
  const branch = (name: string, amount: number) =>
    new LlmAgent({ name, model: new RepeatingModel(amount), tools: [pay] })
  await using server = await serve({
    agent: () => new ParallelAgent({ name: 'both', subAgents: [branch('a', 1), branch('b', 2)] }),
    approvals: { pay: true },
    authenticate: () => ({ id: 'hanako' }),
  })
  const browser = server.browser()
  const text = await (await browser.say('Pay')).text()
  expect(text.match(/"tool-approval-request"/g)).toHaveLength(2)
  const ids = [...text.matchAll(/"approvalId":"([^"]+)","toolCallId"/g)].map(([, id]) => id)
  for (const id of new Set(ids)) await browser.post(`/approvals/${id}`, { approved: true })
  await expect.poll(() => paid.length, POLL).toBe(2)
  expect(paid).toEqual(expect.arrayContaining([{ amount: 1 }, { amount: 2 }]))
})

test.each([1, 2])(
  '[AP143] a call inside an agent with the id of a call of the chat and the amount %i does not run, and the error says so',
  async (amount) => {
    const paid: unknown[] = []
    const pay = tool('pay', (args) => ({ n: paid.push(args) }))
    const inner = new LlmAgent({ name: 'inner', model: new RepeatingModel(amount), tools: [pay] })
    const outer = new (class extends RepeatingModel {
      override async *generateContentAsync(request: LlmRequest): AsyncGenerator<LlmResponse, void> {
        const isAsked = JSON.stringify(request.contents.at(-1)).includes('Ask')
        const call = { id: 'call-2', name: 'inner', args: { request: 'Pay' } }
        if (isAsked) yield { content: { role: 'model', parts: [{ functionCall: call }] } }
        else yield* super.generateContentAsync(request)
      }
    })(1)
    await using server = await serve({
      agent: () => assistant(outer, { tools: [pay, new AgentTool({ agent: inner })] }),
      approvals: { pay: true },
      authenticate: () => ({ id: 'hanako' }),
    })
    const browser = server.browser()
    const [, id = ''] = /"approvalId":"([^"]+)"/.exec(await (await browser.say('Pay')).text()) ?? []
    const text = await (await browser.say('Ask')).text()
    expect(text).not.toContain('"tool-approval-request"')
    expect(text).not.toContain('another program')
    expect(text).toContain('Done.')
    await browser.post(`/approvals/${id}`, { approved: true })
    await expect.poll(() => paid, POLL).toEqual([{ amount: 1 }])
  },
)
