import { expect, test } from 'vitest'

import { compareLines, readInstruction } from '../src/page/inspector/session/instructions.tsx'
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

test.each<[string, unknown, string]>([
  ['a text', { config: { systemInstruction: 'Be brief.' } }, 'Be brief.'],
  [
    'parts',
    { config: { systemInstruction: { parts: [{ text: 'One.' }, {}, { text: 'Two.' }] } } },
    'One.\n\nTwo.',
  ],
  ['no instruction', { config: {} }, ''],
  ['something else', { config: { systemInstruction: 7 } }, ''],
  ['nothing', undefined, ''],
])('[SD1311] the instruction of a request with %s', (_name, request, text) => {
  expect(readInstruction(request)).toBe(text)
})

test.each<[string, string, string]>([
  ['a\nb\nc', 'a\nx\nc', ' a-b+x c'],
  ['a', 'a\nb', ' a+b'],
  ['a\nb', 'b', '-a b'],
  ['', 'a', '-+a'],
  ['a\na', 'a', ' a-a'],
])('[SD1311] the difference between %j and %j', (before, after, expected) => {
  const signs = { ins: '+', del: '-', span: ' ' }
  const lines = compareLines(before, after).map(({ type, text }) => `${signs[type]}${text}`)
  expect(lines.join('')).toBe(expected)
})
