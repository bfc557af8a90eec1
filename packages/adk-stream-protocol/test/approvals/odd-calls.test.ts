import { BaseLlm, type LlmRequest, type LlmResponse } from '@google/adk'
import type { Content, FunctionCall } from '@google/genai'
import { expect, test } from 'vitest'

import { assistant, tool } from '../support/agents.ts'
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
  '[AP838] calls with one id %s approval (%s) are shown and answered one by one',
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
