import { expect, test } from 'vitest'

import { toProblem } from '../../src/client/voice/audio-devices.ts'
import type { VoiceEvent } from '../../src/client/voice/voice-state.ts'
import { nextVoice, startModel, toVoiceState } from '../../src/client/voice/voice-state.ts'
import { detectSpeech, SILENCE } from '../../src/client/voice/talk.ts'
import type { VoiceMode } from '../../src/client/voice/voice-state.ts'

/** Levels of frames. The last one repeats. */
const NOISE = Array.from({ length: 1_000 }, () => 0.03)
const SENTENCE = [0.1, 0.1, 0.1, 0.1, 0.001]

const DENIED = { code: 'permission-denied' } as const

function run(events: readonly VoiceEvent[], mode: VoiceMode = 'hands-free') {
  const model = events.reduce(nextVoice, startModel({ mode, muted: false }))
  return toVoiceState(model)
}

const ON: readonly VoiceEvent[] = [{ type: 'start' }, { type: 'opened' }]
const PERSON: VoiceEvent = { type: 'speaking', who: 'person', speaking: true }
const MODEL: VoiceEvent = { type: 'speaking', who: 'model', speaking: true }
const said = (text: string, final = false): VoiceEvent => ({ type: 'person-said', text, final })
const answered = (text: string): VoiceEvent => ({ type: 'model-said', text })

test.each<[string, readonly VoiceEvent[], object]>([
  ['nothing', [], { state: 'off', mode: 'hands-free', muted: false }],
  ['a start', [{ type: 'start' }], { state: 'asking' }],
  ['two starts', [{ type: 'start' }, { type: 'start' }], { state: 'asking' }],
  ['a start that works', ON, { state: 'listening', held: false, connected: true }],
  [
    'a refusal',
    [{ type: 'start' }, { type: 'stop', problem: DENIED }],
    { state: 'off', problem: DENIED },
  ],
  ['a start after a refusal', [{ type: 'start' }, { type: 'stop', problem: DENIED }, ...ON], {}],
  ['a stop', [...ON, { type: 'stop' }], { state: 'off' }],
  [
    'an opening after a stop',
    [{ type: 'start' }, { type: 'stop' }, { type: 'opened' }],
    { state: 'off' },
  ],
  ['the person', [...ON, PERSON], { state: 'person-speaking' }],
  [
    'the person, muted',
    [...ON, PERSON, { type: 'muted', muted: true }],
    { state: 'listening', muted: true },
  ],
  ['the model', [...ON, MODEL], { state: 'model-speaking' }],
  ['both', [...ON, MODEL, PERSON], { state: 'model-speaking' }],
  [
    'both, the person holding',
    [...ON, MODEL, { type: 'held', held: true }],
    { state: 'person-speaking', held: true },
  ],
  ['the model that ends', [...ON, MODEL, { ...MODEL, speaking: false }], { state: 'listening' }],
  ['noise without a talk', [PERSON, MODEL], { state: 'off' }],
  [
    'another mode while held',
    [...ON, { type: 'held', held: true }, { type: 'mode', mode: 'push-to-talk' }],
    { held: false, mode: 'push-to-talk' },
  ],
  ['a lost connection', [...ON, { type: 'connected', connected: false }], { connected: false }],
  [
    'trouble',
    [...ON, { type: 'trouble', problem: DENIED }],
    { state: 'listening', problem: DENIED },
  ],
  ['words', [...ON, said('Good '), said('day')], { transcript: { person: 'Good day', model: '' } }],
  [
    'words, whole',
    [...ON, said('Good '), said('Good day.', true), said('And')],
    { transcript: { person: 'And', model: '' } },
  ],
  [
    'words, understood',
    [...ON, said('Good'), said('', true)],
    { transcript: { person: 'Good', model: '' } },
  ],
  [
    'words that no message has yet',
    [...ON, said('Good '), said('day')],
    { transcript: { person: 'Good day', isInChat: false } },
  ],
  [
    'words that a turn has, and more of them',
    [...ON, said('Good '), { type: 'person-in-chat' }, said('day'), said('Good day.', true)],
    { transcript: { person: 'Good day.', isInChat: true } },
  ],
  [
    'the next words',
    [...ON, said('Good'), { type: 'person-in-chat' }, said('', true), said('And')],
    { transcript: { person: 'And', isInChat: false } },
  ],
  [
    'an answer',
    [...ON, answered('Hel'), answered('lo')],
    { transcript: { person: '', model: 'Hello' } },
  ],
  [
    'two answers',
    [...ON, answered('Hello'), { type: 'answer-start' }, answered('Yes')],
    { transcript: { person: '', model: 'Yes' } },
  ],
])('[VO6] the state after %s', (_what, events, state) => {
  expect(run(events)).toMatchObject(state)
})

test('[VO6] a state has a problem only while it exists', () => {
  expect(
    run([...ON, { type: 'trouble', problem: DENIED }, { type: 'trouble', problem: undefined }]),
  ).not.toHaveProperty('problem')
  expect(run([{ type: 'start' }, { type: 'stop', problem: DENIED }, ...ON])).not.toHaveProperty(
    'problem',
  )
})

test('[VO6] with push-to-talk, noise does not count as speech', () => {
  expect(run([...ON, PERSON], 'push-to-talk').state).toBe('listening')
  expect(run([...ON, { type: 'held', held: true }], 'push-to-talk').state).toBe('person-speaking')
})

test.each<[string, readonly VoiceEvent[], boolean]>([
  ['a reply that starts', [{ type: 'answer-start' }], true],
  ['a reply that speaks', [{ type: 'answer-start' }, MODEL], true],
  ['a reply that ends', [{ type: 'answer-start' }, { type: 'replying', replying: false }], false],
  ['a lost connection', [{ type: 'answer-start' }, { type: 'connected', connected: false }], false],
])('[VO6] %s: whether the model works on a reply', (_name, events, replying) => {
  expect(run([...ON, ...events])).toMatchObject({ replying })
})

test.each<VoiceEvent>([
  { type: 'opened' },
  { type: 'mode', mode: 'hands-free' },
  { type: 'muted', muted: false },
  { type: 'held', held: false },
  { type: 'connected', connected: true },
  { type: 'trouble', problem: undefined },
  { ...PERSON, speaking: false },
  { type: 'replying', replying: false },
])('[VO6] an event without effect returns the same snapshot: %o', (event) => {
  const model = ON.reduce(nextVoice, startModel({ mode: 'hands-free', muted: false }))
  expect(nextVoice(model, event)).toBe(model)
})

test.each([
  ['NotAllowedError', 'permission-denied'],
  ['SecurityError', 'permission-denied'],
  ['NotFoundError', 'no-microphone'],
  ['OverconstrainedError', 'no-microphone'],
  ['NotReadableError', 'in-use'],
  ['AbortError', 'in-use'],
  ['InvalidStateError', 'unsupported'],
])('[VO7] %s becomes the problem %s', (name, code) => {
  const error = new DOMException('no', name)
  expect(toProblem(error)).toEqual({ code, cause: error })
})

test.each([
  { what: 'a quiet room', levels: [0.001], frames: 100, speaking: false },
  { what: 'a voice', levels: [0.1], frames: 3, speaking: true },
  { what: 'a click', levels: [0.3, 0.001], frames: 2, speaking: false },
  { what: 'a noisy room that goes on', levels: [0.03], frames: 1_000, speaking: false },
  { what: 'a voice in a noisy room', levels: [...NOISE, 0.3], frames: 1_005, speaking: true },
  { what: 'a pause within a sentence', levels: SENTENCE, frames: 20, speaking: true },
  { what: 'the end of a sentence', levels: SENTENCE, frames: 60, speaking: false },
])('[VO6] $what is detected', ({ levels, frames, speaking }) => {
  const all = Array.from({ length: frames }, (_none, at) => levels[at] ?? levels.at(-1) ?? 0)
  expect(all.reduce(detectSpeech, SILENCE).speaking).toBe(speaking)
})
