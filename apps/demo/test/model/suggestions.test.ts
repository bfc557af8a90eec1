import type { Content } from 'gemini-emulator'
import { expect, test } from 'vitest'

import { en } from '../../src/page/i18n/en.ts'
import { ja } from '../../src/page/i18n/ja.ts'
import { respond, declare, demoTools, location, pay, track, weather } from './prompt.ts'

const functions = [
  ...demoTools,
  declare('adk_request_input', { message: { type: 'STRING' } }, ['message']),
  declare('accountant', { request: { type: 'STRING' } }, ['request']),
  declare('get_calendar', {}, []),
  declare('transfer_to_agent', { agentName: { type: 'STRING' } }, ['agentName']),
  declare('propose_plan', { steps: { type: 'ARRAY', items: { type: 'OBJECT' } } }, ['steps']),
  declare('notebook', { request: { type: 'STRING' } }, ['request']),
]

/** One pixel. */
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='

/** The first actions of the model after each suggestion, in order: its calls, or the types of its actions. */
const toOutcomes = (one: string, other: string) => [
  [pay(30, one), pay(40, other)],
  [{ name: 'propose_plan' }],
  [{ name: 'accountant' }],
  [{ name: 'transfer_to_agent', args: { agentName: 'weekend_trip' } }],
  [{ name: 'notebook' }],
  [{ name: 'adk_request_input' }],
  [{ name: 'get_calendar' }],
  [weather('Tokyo')],
  [location],
  [{ name: 'notebook' }],
  [track(2)],
  [pay(20, one)],
  ['image', 'say'],
  ['say'],
  ['think', 'say'],
  ['say', 'ground'],
  ['say'],
  ['fail'],
]

test.each([
  ['en', en, 'Alice', 'Bob'],
  ['ja', ja, '花子', '太郎'],
] as const)(
  '[DM65] every suggestion makes the call that it describes, in %s',
  (_language, texts, recipient, other) => {
    const { starts, suggestions } = texts.page
    const started = starts.map(({ text }) => text && respond(text, { functions }).calls)
    // The last one switches to the voice.
    expect(started).toEqual([[pay(50, recipient)], [pay(600, recipient)], undefined])
    const first = suggestions
      .flatMap((group) => group.suggestions)
      .map(({ text, needsPicture = false }) => {
        const picture = { inlineData: { mimeType: 'image/png', data: PNG } }
        const contents: Content[] = [
          { role: 'user', parts: needsPicture ? [{ text }, picture] : [{ text }] },
        ]
        const { calls, actions } = respond(contents, { functions, includeThoughts: true })
        return calls.length > 0 ? calls : actions.map(({ type }) => type)
      })
    const outcomes = toOutcomes(recipient, other)
    expect(first).toMatchObject(outcomes)
    expect(first.map(({ length }) => length)).toEqual(outcomes.map(({ length }) => length))
  },
)
