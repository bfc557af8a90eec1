import {
  BaseLlm,
  type BaseLlmConnection,
  type Event,
  FunctionTool,
  LlmAgent,
  type LlmRequest,
  type LlmResponse,
  LogLevel,
  Runner,
  setLogLevel,
} from '@google/adk'
import type { Content } from '@google/genai'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { Store } from '../../src/store/store.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { key, readSession } from '../../src/store/contract/fixtures.ts'

setLogLevel(LogLevel.ERROR)

test('[ST33] a turn with a tool call and state is stored as it ran, and continues after a restart', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('s.db')
  const store = await openSqliteStore({ path })
  await store.sessions.createSession({ ...key, state: { balance: 1000 } })
  const model = new ScriptedLlm([call('pay', { amount: 50 }), say('送金しました。')])
  const events = await runTurn(runnerOn(store, model), { text: '花子さんに50ドル送金してください' })
  expect(events.map(textOf)).toEqual(['call pay', 'response pay', '送金しました。'])
  await store.close()

  await using reopened = await openSqliteStore({ path })
  const session = await readSession(reopened.sessions)
  expect(session.state).toEqual({ balance: 950, 'user:payments': 1 })
  expect(session.events.slice(1)).toEqual(events)
  const next = new ScriptedLlm([say('950ドルです。')])
  await runTurn(runnerOn(reopened, next), { text: '残高は?' })
  expect(next.requests[0]?.contents.map((content) => content.role)).toEqual([
    'user',
    'model',
    'user',
    'model',
    'user',
  ])
  const texts = (await readSession(reopened.sessions)).events.map(textOf)
  expect(texts.slice(-2)).toEqual(['残高は?', '950ドルです。'])
})

test('[ST33] a confirmed call resumes on stored events, and a callback may edit its arguments', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('s.db')
  const store = await openSqliteStore({ path })
  await store.sessions.createSession({ ...key, state: { balance: 1000 } })
  const asking = new ScriptedLlm([call('pay_after_approval', { amount: 50 })])
  const asked = await runTurn(runnerOn(store, asking), { text: 'pay 50' })
  const request = asked.at(-1)?.content?.parts?.[0]?.functionCall
  expect(request?.name).toBe('adk_request_confirmation')
  await store.close()

  await using reopened = await openSqliteStore({ path })
  // Filled before, so that the run uses shared events.
  const before = structuredClone((await readSession(reopened.sessions)).events)
  const answering = new ScriptedLlm([say('done')])
  const runner = runnerOn(reopened, answering, (args) => {
    args['amount'] = 20
  })
  const id = request?.id ?? ''
  const response = { confirmed: true }
  await runTurn(runner, { functionResponse: { id, name: 'adk_request_confirmation', response } })
  const session = await readSession(reopened.sessions)
  expect(session.state['balance']).toBe(980)
  expect(structuredClone(session.events.slice(0, before.length))).toEqual(before)
})

class ScriptedLlm extends BaseLlm {
  readonly requests: LlmRequest[] = []
  readonly #steps: LlmResponse[]

  constructor(steps: LlmResponse[]) {
    super({ model: 'scripted' })
    this.#steps = [...steps]
  }

  override async *generateContentAsync(request: LlmRequest): AsyncGenerator<LlmResponse, void> {
    this.requests.push(request)
    const step = this.#steps.shift()
    if (step === undefined) throw new Error('the model was asked more often than the script says')
    yield step
  }

  override connect(): Promise<BaseLlmConnection> {
    throw new Error('the scripted model has no live mode')
  }
}

function say(text: string): LlmResponse {
  return { content: { role: 'model', parts: [{ text }] } }
}

function call(name: string, args: Record<string, unknown>): LlmResponse {
  return { content: { role: 'model', parts: [{ functionCall: { name, args } }] } }
}

function runnerOn(
  store: Store,
  model: BaseLlm,
  editArguments: (args: Record<string, unknown>) => void = () => {},
): Runner {
  const agent = new LlmAgent({
    name: 'assistant',
    model,
    tools: [payTool('pay', false), payTool('pay_after_approval', true)],
    beforeToolCallback: ({ args }) => {
      editArguments(args)
      return undefined
    },
  })
  return new Runner({ appName: key.appName, agent, sessionService: store.sessions })
}

function payTool(name: string, requireConfirmation: boolean): FunctionTool {
  return new FunctionTool({
    name,
    description: 'Pays an amount.',
    parameters: z.object({ amount: z.number() }),
    requireConfirmation,
    execute: ({ amount }, context) => {
      const balance = (context?.state.get<number>('balance') ?? 0) - amount
      context?.state.set('balance', balance)
      context?.state.set('user:payments', 1)
      context?.state.set('temp:last', amount)
      return { balance }
    },
  })
}

async function runTurn(
  runner: Runner,
  part: NonNullable<Content['parts']>[number],
): Promise<Event[]> {
  const events: Event[] = []
  const newMessage: Content = { role: 'user', parts: [part] }
  const { userId, sessionId } = key
  for await (const event of runner.runAsync({ userId, sessionId, newMessage })) events.push(event)
  return events
}

function textOf(event: Event): string | undefined {
  const [part] = event.content?.parts ?? []
  if (part?.functionCall) return `call ${part.functionCall.name}`
  return part?.functionResponse ? `response ${part.functionResponse.name}` : part?.text
}
