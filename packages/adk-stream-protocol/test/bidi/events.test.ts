import { expect, test } from 'vitest'

import type { NamedApproval } from '../../src/protocol/tool-results.ts'
import { readToolResult } from '../../src/protocol/tool-results.ts'
import {
  isBidiShaped,
  readBidiEvent,
} from '../../src/server/dialects/python-clients/bidi-events.ts'

const bytes = (value: unknown): Uint8Array =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))

const CONFIRMATION = 'adk_request_confirmation'
const HELLO = [{ role: 'user', parts: [{ type: 'text', text: 'Hello' }] }]

test.each([
  ['message', { messages: HELLO }],
  ['tool_result', { toolCallId: 'c1', result: { confirmed: true } }],
  ['interrupt', { reason: 'user_abort' }],
  ['ping', { timestamp: 1_735_000_000_000 }],
  ['audio_control', { action: 'start' }],
  ['audio_chunk', { chunk: 'AAAA', sampleRate: 16_000, channels: 1, bitDepth: 16 }],
])('[BD2] %s is read flat and nested, with a version and without', (type, content) => {
  const flat = readBidiEvent(bytes({ type, ...content }))
  expect(flat).toMatchObject({ type: 'bidi', event: type })
  expect(readBidiEvent(bytes({ type, version: '1.0', data: content }))).toEqual(flat)
  expect(readBidiEvent(bytes({ type, version: '1.0', ...content }))).toEqual(flat)
})

test.each([
  ['not JSON', '{', 'unknown'],
  ['no object', '[]', 'unknown'],
  ['null', 'null', 'unknown'],
  ['no type', '{}', 'unknown'],
  ['a type of no use', '{"type":7}', 'unknown'],
  ['another type', '{"type":"__proto__"}', '__proto__'],
  ['a frame of the other dialect', '{"type":"send"}', 'send'],
  ['no messages', '{"type":"message"}', 'message'],
  ['empty messages', '{"type":"message","messages":[]}', 'message'],
  ['a chat id of no use', '{"type":"message","id":"a b","messages":[{}]}', 'message'],
  ['a result without a call', '{"type":"tool_result","result":{}}', 'tool_result'],
  ['a result without a result', '{"type":"tool_result","toolCallId":"c"}', 'tool_result'],
  ['an action of no use', '{"type":"audio_control","action":"pause"}', 'audio_control'],
  ['sound that is none', '{"type":"audio_chunk","chunk":"%"}', 'audio_chunk'],
  ['sound in stereo', '{"type":"audio_chunk","chunk":"AAAA","channels":2}', 'audio_chunk'],
  [
    'a part without its call',
    '{"type":"message","messages":[{"role":"user","parts":[{"type":"tool-result"}]}]}',
    'message',
  ],
])('[BD2] %s is rejected, and the error names the event', (_case, text, frame) => {
  expect(readBidiEvent(bytes(text))).toMatchObject({
    fault: { frame, message: expect.stringMatching(/\w+/) as string },
  })
})

test.each([
  [{ type: 'message', messages: HELLO }, true],
  [{ type: 'tool_result' }, true],
  [{ type: 'audio_chunk' }, true],
  [{ type: 'ping', timestamp: 1 }, true],
  [{ type: 'interrupt', version: '1.0' }, true],
  [{ type: 'ping', nonce: 'n' }, false],
  [{ type: 'interrupt', id: 'chat-1' }, false],
  [{ type: 'send', requestId: 'r1' }, false],
  ['{', false],
])('[BD1] whether %j comes from a client of text frames: %s', (frame, expected) => {
  expect(isBidiShaped(bytes(frame))).toBe(expected)
})

const approval: NamedApproval = {
  by: 'approval',
  approvalId: 'a1',
  toolCallId: 'c1',
  toolName: 'process_payment',
  messageId: 'm1',
  waits: true,
}
const call: NamedApproval = { ...approval, by: 'call' }

test.each([
  ['a confirmation', { toolCallId: 'a1', toolName: CONFIRMATION, result: { confirmed: true } }],
  ['a confirmation without a name', { toolCallId: 'a1', result: { confirmed: true } }],
])('[BD6] %s under the id of the approval is a decision', (_case, given) => {
  expect(readToolResult(given, approval)).toEqual({
    decision: { approvalId: 'a1', approved: true },
  })
})

test('[BD6] consent under the id of the call is a decision, with the text of the person as the reason', () => {
  const result = { approved: false, user_message: 'User denied' }
  const given = { toolCallId: 'c1', toolName: 'process_payment', result }
  expect(readToolResult(given, call)).toEqual({
    decision: { approvalId: 'a1', approved: false, reason: 'User denied' },
  })
})

test('[BD6] a result that is not a decision is the output of a tool', () => {
  const given = { toolCallId: 'c1', result: { latitude: 1 } }
  const output = { toolCallId: 'c1', result: { output: { latitude: 1 } } }
  expect(readToolResult(given, undefined)).toEqual({ output })
  expect(readToolResult(given, { ...call, waits: false })).toEqual({ output })
})

const INSTEAD = /Send \{ "confirmed".*under the id a1, or \{ "approved".*under the id c1\./

test.each([
  [
    'the original tool with the answer of the confirmation',
    { toolCallId: 'c1', toolName: 'process_payment', result: { confirmed: true } },
    call,
  ],
  [
    'the name of the confirmation with the id of the call',
    { toolCallId: 'c1', toolName: CONFIRMATION, result: { confirmed: true } },
    call,
  ],
  [
    'the name of the tool with the id of the confirmation',
    { toolCallId: 'a1', toolName: 'process_payment', result: { confirmed: true } },
    approval,
  ],
  ['a made-up result of a gated tool', { toolCallId: 'c1', result: { success: true } }, call],
  ['a question answered with something else', { toolCallId: 'a1', result: 'yes' }, approval],
  ['a decision that is neither', { toolCallId: 'a1', result: { confirmed: 'true' } }, approval],
])('[DI3] %s is rejected, and the error says what to send instead', (_case, given, known) => {
  expect(() => readToolResult(given, known)).toThrow(INSTEAD)
})

test('[DI3] a confirmation without an approval is rejected with unknown-approval', () => {
  const given = { toolCallId: 'x', toolName: CONFIRMATION, result: { confirmed: true } }
  expect(() => readToolResult(given, undefined)).toThrow(/approval/)
})
