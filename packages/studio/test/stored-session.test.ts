import { expect, test } from 'vitest'

import {
  countTokens,
  type StoredEvent,
  summarizeEvent,
  toShortJson,
} from '../src/page/inspector/session/stored-session.ts'

const EVENT: StoredEvent = { id: 'e1', author: 'assistant', timestamp: 1 }

test.each<[string, StoredEvent, string]>([
  ['a text', { ...EVENT, content: { parts: [{ text: 'Hel' }, { text: 'lo.' }] } }, 'Hello.||'],
  ['a call', { ...EVENT, content: { parts: [{ functionCall: { name: 'pay' } }] } }, '|pay|'],
  ['a result', { ...EVENT, content: { parts: [{ functionResponse: { name: 'pay' } }] } }, '||pay'],
  ['no content', EVENT, '||'],
])('[SD1311] the line of an event with %s', (_name, event, line) => {
  const { text, calls, responses } = summarizeEvent(event)
  expect([text, calls.join(), responses.join()].join('|')).toBe(line)
})

test('[SD1311] the tokens of a session are those of all its events', () => {
  const usage = { promptTokenCount: 10, candidatesTokenCount: 3, thoughtsTokenCount: 2 }
  const events = [{ ...EVENT, usageMetadata: usage }, EVENT, { ...EVENT, usageMetadata: usage }]
  expect(countTokens(events)).toEqual({ input: 20, output: 10 })
})

test('[SD1311] a long text, such as a picture, is shortened on the screen', () => {
  const shown = toShortJson({ data: 'x'.repeat(5_000), name: 'short' })
  expect(shown.length).toBeLessThan(2_200)
  expect(shown).toContain('(5000)')
  expect(shown).toContain('"short"')
})
