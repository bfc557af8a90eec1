import type { Action, Content, FunctionDeclaration, Prompt } from 'gemini-emulator'

import { demoModel } from '../../src/model/demo-model.ts'

/** The demo's tools as ADK declares them to Gemini. */
export const demoTools: readonly FunctionDeclaration[] = [
  declare('get_weather', { location: { type: 'STRING' } }, ['location']),
  declare(
    'process_payment',
    {
      amount: { type: 'NUMBER' },
      recipient: { type: 'STRING' },
      currency: { type: 'STRING' },
      description: { type: 'STRING' },
    },
    ['amount', 'recipient'],
  ),
  declare('get_location', {}, []),
  declare('change_bgm', { track: { type: 'INTEGER', minimum: 1, maximum: 2 } }, ['track']),
]

export function declare(
  name: string,
  properties: Readonly<Record<string, unknown>>,
  required: readonly string[],
): FunctionDeclaration {
  return { name, parameters: { type: 'OBJECT', properties, required } }
}

/** A prompt without contents. */
export const PROMPT: Prompt = {
  mode: 'rest',
  model: 'gemini-2.5-flash',
  systemInstruction: '',
  contents: [],
  functions: demoTools,
  includeThoughts: false,
}

export type Call = Pick<Extract<Action, { type: 'call' }>, 'name' | 'args'>

export interface Reply {
  readonly text: string
  readonly calls: readonly Call[]
  readonly actions: readonly Action[]
}

/** Calls the demo model. A string is a conversation with one request. */
export function respond(
  request: string | readonly Content[],
  options: Partial<Prompt> = {},
): Reply {
  const contents = typeof request === 'string' ? [user(request)] : request
  const actions = demoModel({ ...PROMPT, contents, ...options })
  if (!Array.isArray(actions)) throw new Error('The demo model returns its actions synchronously.')
  const known: readonly Action[] = actions
  return {
    actions: known,
    text: known.flatMap((action) => (action.type === 'say' ? [action.text] : [])).join('\n'),
    calls: known.flatMap((action) =>
      action.type === 'call' ? [{ name: action.name, args: action.args }] : [],
    ),
  }
}

export const user = (text: string): Content => ({ role: 'user', parts: [{ text }] })
export const model = (text: string): Content => ({ role: 'model', parts: [{ text }] })

/** Returns a conversation: a request, its calls, and the responses to the first of them. */
export function afterCalls(
  request: string,
  calls: readonly Call[],
  responses: readonly Readonly<Record<string, unknown>>[],
): Content[] {
  return [
    user(request),
    {
      role: 'model',
      parts: calls.map((call, index) => ({
        functionCall: { id: id(index), name: call.name, args: { ...call.args } },
      })),
    },
    {
      role: 'user',
      parts: responses.map((response, index) => ({
        functionResponse: {
          id: id(index),
          name: calls[index]?.name ?? '',
          response: { ...response },
        },
      })),
    },
  ]
}

const id = (index: number): string => `call-${String(index)}`

export const pay = (amount: number, recipient: string, currency = 'USD'): Call => ({
  name: 'process_payment',
  args: { amount, recipient, currency },
})
export const weather = (location: string): Call => ({ name: 'get_weather', args: { location } })
export const track = (number: number): Call => ({ name: 'change_bgm', args: { track: number } })
export const location: Call = { name: 'get_location', args: {} }
