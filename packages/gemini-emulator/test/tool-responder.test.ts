import { FunctionTool, Gemini, InMemoryRunner, LlmAgent } from '@google/adk'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { firstOf, scriptResponder, startEmulator, toolResponder } from '../src/index.ts'
import type { Content, FunctionDeclaration, Prompt } from '../src/index.ts'
import { fillArguments } from '../src/responders/fill-arguments.ts'

const FUNCTIONS: readonly FunctionDeclaration[] = [
  { name: 'get_weather', description: 'Returns the current weather in a city.' },
  { name: 'process_payment', description: 'Sends money to a person. 送金する。' },
  { name: 'transfer_to_agent', description: 'Transfers the question to another agent.' },
]

const user = (text: string): Content => ({ role: 'user', parts: [{ text }] })

function respond(contents: readonly Content[], prompt: Partial<Prompt> = {}) {
  return toolResponder({
    mode: 'rest',
    model: 'gemini-2.5-flash',
    systemInstruction: '',
    contents,
    functions: FUNCTIONS,
    includeThoughts: false,
    ...prompt,
  })
}

test.each<[message: string, name: string | undefined]>([
  ['What is the weather in Tokyo?', 'get_weather'],
  ['Please pay Alice', 'process_payment'],
  ['Send some money', 'process_payment'],
  ['アリスに送金してください', 'process_payment'],
  ['Which agent are you?', undefined],
  ['Hello', undefined],
  ['is it to the', undefined],
])('[EM1250] %j calls %s', async (message, name) => {
  const [said, call] = (await respond([user(message)])) ?? []
  expect(said).toMatchObject({
    type: 'say',
    text: expect.stringContaining('not a model') as string,
  })
  expect(call).toEqual(name && { type: 'call', name, args: {} })
})

test('[EM1250] without a match it lists the functions with an example, and calling mode NONE is kept', async () => {
  expect(await respond([user('Hello')])).toEqual([
    {
      type: 'say',
      text: 'This is the emulator, not a model. It calls a tool if your message has words of its name or description: get_weather, process_payment. To call one with other arguments, send [[call get_weather {}]]',
    },
  ])
  const silent = [{ type: 'say', text: 'This is the emulator, not a model. It received: Pay Bob' }]
  expect(await respond([user('Pay Bob')], { callMode: 'NONE' })).toEqual(silent)
  expect(await respond([user('Pay Bob')], { functions: [] })).toEqual(silent)
  const forced = await respond([user('Hello')], { callMode: 'ANY' })
  expect(forced?.[1]).toMatchObject({ type: 'call', name: 'get_weather' })
})

test.each<[schema: z.ZodObject, message: string, args: Record<string, unknown>]>([
  [
    z.object({ amount: z.number().min(1), to: z.string() }),
    'Pay 30 to "Alice"',
    { amount: 30, to: 'Alice' },
  ],
  [
    z.object({ orderId: z.string(), amount: z.number() }),
    'Refund order A17, 12 dollars',
    { orderId: 'A17', amount: 12 },
  ],
  [
    z.object({ city: z.string(), on: z.iso.date() }),
    'What is it like in New-York on day 3?',
    { city: 'New-York', on: '2030-01-01' },
  ],
  [
    z.object({ to: z.string(), amount: z.number() }),
    '「花子」に50ドル送金',
    { to: '花子', amount: 50 },
  ],
  [z.object({ to: z.string() }), 'Hello there', { to: 'to' }],
  [z.object({ amount: z.int().max(10) }), 'Pay 12.5', { amount: 1 }],
  [z.object({ unit: z.enum(['usd', 'eur']) }), 'in EUR', { unit: 'eur' }],
  [z.object({ unit: z.enum(['usd', 'eur']), note: z.string().optional() }), '', { unit: 'usd' }],
  [z.object({ city: z.string().meta({ examples: ['Kyoto'] }) }), '', { city: 'Kyoto' }],
  [
    z.object({ city: z.string().min(6), on: z.iso.date() }),
    '',
    { city: 'city..', on: '2030-01-01' },
  ],
  [
    z.object({ items: z.array(z.object({ id: z.int().min(5), ok: z.boolean() })).min(2) }),
    '7',
    {
      items: [
        { id: 7, ok: false },
        { id: 5, ok: false },
      ],
    },
  ],
  [
    z.object({ who: z.union([z.object({ email: z.email() }), z.null()]) }),
    '',
    { who: { email: 'someone@example.com' } },
  ],
  [
    z.object({ kind: z.literal('fixed'), level: z.number().gt(3) }),
    '',
    { kind: 'fixed', level: 4 },
  ],
])('[EM1251] the arguments fit the schema', (schema, message, args) => {
  const filled = fillArguments({ parametersJsonSchema: z.toJSONSchema(schema) }, message)
  expect(filled).toEqual(args)
  expect(schema.safeParse(filled).success).toBe(true)
})

test('[EM1251] a schema that contains itself ends', () => {
  const schema = {
    $ref: '#/$defs/node',
    $defs: {
      node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } }, required: ['next'] },
    },
  }
  expect(fillArguments({ parametersJsonSchema: schema }, '')).toHaveProperty('next.next')
})

test('[EM1250] [EM1251] an agent of ADK runs the tool of a message, and its result is repeated', async () => {
  await using emulator = await startEmulator({ respond: firstOf(scriptResponder, toolResponder) })
  class EmulatedGemini extends Gemini {
    protected override getHttpOptions() {
      return { ...super.getHttpOptions(), baseUrl: emulator.baseUrl }
    }
  }
  const refund = new FunctionTool({
    name: 'refund_order',
    description: 'Refunds an order.',
    parameters: z.object({ order: z.int(), speed: z.enum(['slow', 'fast']) }),
    execute: (args) => ({ refunded: args }),
  })
  const model = new EmulatedGemini({ model: 'gemini-2.5-flash', apiKey: 'any' })
  const agent = new LlmAgent({ name: 'support', model, tools: [refund] })
  const runner = new InMemoryRunner({ agent, appName: 'support' })
  const { id: sessionId } = await runner.sessionService.createSession({
    appName: 'support',
    userId: 'u',
  })
  const newMessage = { role: 'user', parts: [{ text: 'A fast refund of order 17, please' }] }
  const texts: string[] = []
  for await (const { content } of runner.runAsync({ userId: 'u', sessionId, newMessage }))
    texts.push(...(content?.parts ?? []).flatMap(({ text }) => text ?? []))
  expect(texts.at(-1)).toBe(
    'This is the emulator, not a model. The result: refund_order -> {"refunded":{"order":17,"speed":"fast"}}',
  )
})
