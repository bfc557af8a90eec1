import {
  FunctionTool,
  InMemoryRunner,
  type LlmAgent,
  REQUEST_CONFIRMATION_FUNCTION_CALL_NAME,
} from '@google/adk'
import type { FunctionResponse, Part } from '@google/genai'
import { startEmulator } from 'gemini-emulator'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { sampleWeather } from '../src/agent/weather/weather.ts'
import { createDemoAgent } from '../src/agent/demo-agent.ts'
import { PaymentRequest } from '../src/agent/tools/process-payment.ts'
import { openSqliteWallets } from '../src/agent/wallet/sqlite-wallets.ts'
import { openModel } from '../src/server/model.ts'
import { readSettings } from '../src/server/settings.ts'

test('[DM1] the agent declares its tools, two of which need approval', async () => {
  await using demo = await openAgent()
  const tools = demo.agent.tools.filter((tool) => tool instanceof FunctionTool)
  const gates = await Promise.all(
    tools.map(async (tool) => [tool.name, await tool.checkRequireConfirmation(ARGUMENTS)]),
  )
  expect(Object.fromEntries(gates)).toEqual({
    get_weather: false,
    process_payment: true,
    get_location: true,
    change_bgm: false,
    adk_request_input: false,
  })
})

test('[DM2] an approved payment is made and returns the new balance', async () => {
  await using demo = await openAgent()
  const pay = '[[call process_payment {"amount": 50, "recipient": "花子"}]]'
  const receipt = await demo.run(pay)
  expect(receipt).toMatchObject({
    success: true,
    amount: 50,
    currency: 'USD',
    recipient: '花子',
    description: '',
    wallet_balance: 950,
  })
  expect(receipt?.['transaction_id']).toMatch(/^txn_[0-9a-f]{12}$/)
  expect(receipt?.['timestamp']).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/)
  expect(demo.wallets.balance('hanako')).toBe(95_000)
})

test.each([
  ['{"amount": 0, "recipient": "Alice"}', /^Invalid amount: 0\./],
  ['{"amount": -5, "recipient": "Alice"}', /^Invalid amount: -5\./],
  ['{"amount": 1.005, "recipient": "Alice"}', /at most two decimals/],
  ['{"amount": 1000.01, "recipient": "Alice"}', /^Insufficient funds\. Balance: 1000 USD/],
  ['{"amount": 5, "recipient": "Alice", "currency": "jpy"}', /^The wallet holds USD, JPY/],
])('[DM3] refuses the payment %s', async (request, sentence) => {
  await using demo = await openAgent()
  const refusal = await demo.run(`[[call process_payment ${request}]]`)
  expect(refusal).toMatchObject({ success: false, transaction_id: null, wallet_balance: 1000 })
  expect(refusal?.['error']).toMatch(sentence)
  expect(demo.wallets.balance('hanako')).toBe(100_000)
})

test('[DM690] the form of a payment has the limits of the tool', () => {
  expect(z.toJSONSchema(PaymentRequest, { io: 'input' }).properties).toMatchObject({
    amount: { type: 'number', minimum: 0.01 },
    currency: { enum: ['USD'], default: 'USD' },
    recipient: { minLength: 1, maxLength: 200 },
  })
})

test('[DM6] returns the weather of a place', async () => {
  await using demo = await openAgent()
  const report = await demo.run('[[call get_weather {"location": "Tokyo"}]]')
  expect(report).toMatchObject({ temperature: 18, condition: 'Cloudy', humidity: 65 })
})

test.each([
  ['[[call get_location {}]]', 'get_location'],
  ['[[call change_bgm {"track": 2}]]', 'change_bgm'],
])('[DM9] %s runs in the browser, which sends its result', async (script, name) => {
  await using demo = await openAgent()
  const tool = demo.agent.tools.find(
    (candidate) => candidate instanceof FunctionTool && candidate.name === name,
  )
  expect(tool).toMatchObject({ isLongRunning: true })
  expect(await demo.run(script)).toBeUndefined()
})

const ARGUMENTS = { location: 'Tokyo', amount: 1, recipient: 'Alice', track: 1 }

async function openAgent() {
  const emulator = await startEmulator()
  const model = await openModel(
    readSettings({ GOOGLE_API_KEY: 'test', GOOGLE_GEMINI_BASE_URL: emulator.baseUrl }),
  )
  const wallets = openSqliteWallets(':memory:')
  const agent = createDemoAgent({
    model: model.llm,
    wallets,
    weather: sampleWeather,
    notesFile: 'unused',
    languageOf: () => 'en',
  })
  return {
    agent,
    wallets,
    run: (script: string) => runTool(agent, script),
    async [Symbol.asyncDispose]() {
      wallets[Symbol.dispose]()
      await emulator.close()
    },
  }
}

/** Makes the model call a tool, approves the call if ADK requests a confirmation, and returns the result of the tool. */
async function runTool(agent: LlmAgent, script: string): Promise<FunctionResponse['response']> {
  const runner = new InMemoryRunner({ agent, appName: 'demo' })
  const session = await runner.sessionService.createSession({ appName: 'demo', userId: 'hanako' })
  const send = async (part: Part): Promise<Part[]> => {
    const parts: Part[] = []
    const newMessage = { role: 'user', parts: [part] }
    const run = runner.runAsync({ userId: 'hanako', sessionId: session.id, newMessage })
    for await (const { content } of run) parts.push(...(content?.parts ?? []))
    return parts
  }
  const firstParts = await send({ text: script })
  const request = firstParts.find(({ functionCall }) => functionCall?.name === CONFIRMATION)
  const id = request?.functionCall?.id
  const parts = id
    ? await send({ functionResponse: { id, name: CONFIRMATION, response: { confirmed: true } } })
    : firstParts
  return parts.find(({ functionResponse }) => functionResponse)?.functionResponse?.response
}

const CONFIRMATION = REQUEST_CONFIRMATION_FUNCTION_CALL_NAME
