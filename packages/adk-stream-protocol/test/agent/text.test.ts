import { describe, expect, test } from 'vitest'

import {
  call,
  event,
  lines,
  partial,
  response,
  translate,
  whole,
} from './support/translate-events.ts'

const text = (value: string) => ({ text: value })
const thought = (value: string) => ({ text: value, thought: true })

/** An event of one of several agents that run in parallel. */
function of(author: string, value: string, isPartial: boolean) {
  return event({
    author,
    branch: author,
    partial: isPartial,
    content: { role: 'model', parts: [text(value)] },
  })
}

/** Returns the text that the client receives, by kind. */
function prose(chunks: ReturnType<typeof translate>, kind: 'text' | 'reasoning'): string {
  return chunks
    .flatMap((chunk) => (chunk.type === `${kind}-delta` && 'delta' in chunk ? [chunk.delta] : []))
    .join('')
}

describe('text', () => {
  test('[MP1] the complete event does not repeat streamed text', () => {
    const chunks = translate([partial(text('Hel')), partial(text('lo')), whole(text('Hello'))])
    expect(lines(chunks)).toEqual([
      'start-step',
      'text-start text-1',
      'text-delta text-1 "Hel"',
      'text-delta text-1 "lo"',
      'text-end text-1',
    ])
  })

  test('[MP1] a complete event without streaming is sent entirely', () => {
    expect(lines(translate([whole(text('Hello'))]))).toEqual([
      'start-step',
      'text-start text-1',
      'text-delta text-1 "Hello"',
      'text-end text-1',
    ])
  })

  test('[MP1] a tool response between the deltas of a text does not repeat the text', () => {
    const result = event({ content: { role: 'user', parts: [response('c-1', { result: 1 })] } })
    const chunks = translate([
      whole(call('c-1')),
      partial(text('Please ')),
      result,
      partial(text('wait.')),
      whole(text('Please wait.')),
    ])
    expect(prose(chunks, 'text')).toBe('Please wait.')
  })

  test('[MP1] text that was not streamed is sent from the complete event', () => {
    const chunks = translate([partial(text('Hel')), whole(text('Hello'))])
    expect(prose(chunks, 'text')).toBe('Hello')
  })

  test('[MP1] text that differs from the streamed one is sent too, not lost', () => {
    const chunks = translate([partial(text('I think')), whole(text('[filtered]'))])
    expect(prose(chunks, 'text')).toBe('I think[filtered]')
  })

  test('[MP1] the parts of a complete event are matched as one text', () => {
    const chunks = translate([
      partial(text('AB')),
      partial(text('C')),
      whole(text('A'), text('BCD')),
    ])
    expect(prose(chunks, 'text')).toBe('ABCD')
  })

  test('[MP1] the same text in two model calls is sent twice', () => {
    const chunks = translate([
      partial(text('Yes.')),
      whole(text('Yes.')),
      partial(text('Yes.')),
      whole(text('Yes.')),
    ])
    expect(prose(chunks, 'text')).toBe('Yes.Yes.')
  })

  test('[MP1] a long text is matched by its length and last characters alone', () => {
    const pieces = Array.from({ length: 500 }, (_, index) => `piece ${index} `)
    const chunks = translate([
      ...pieces.map((piece) => partial(text(piece))),
      whole(text(pieces.join(''))),
    ])
    expect(prose(chunks, 'text')).toBe(pieces.join(''))
  })

  test('[MP2] reasoning and text keep their stream order', () => {
    const chunks = translate([
      partial(thought('Hmm. ')),
      partial(text('One. ')),
      partial(thought('So. ')),
      partial(text('Two.')),
      whole(thought('Hmm. So. '), text('One. Two.')),
    ])
    expect(lines(chunks)).toEqual([
      'start-step',
      'reasoning-start reasoning-1',
      'reasoning-delta reasoning-1 "Hmm. "',
      'reasoning-end reasoning-1',
      'text-start text-2',
      'text-delta text-2 "One. "',
      'text-end text-2',
      'reasoning-start reasoning-3',
      'reasoning-delta reasoning-3 "So. "',
      'reasoning-end reasoning-3',
      'text-start text-4',
      'text-delta text-4 "Two."',
      'text-end text-4',
    ])
  })

  test('[MP1] text before a call is closed by the event that flushes it', () => {
    const chunks = translate([partial(text('Look: ')), whole(text('Look: ')), whole(call('c1'))])
    expect(lines(chunks).slice(-3)).toEqual([
      'text-end text-1',
      'tool-input-start c1 "look"',
      'tool-input-available c1 "look" {}',
    ])
  })

  test('[CH3] empty text opens no part', () => {
    expect(translate([partial(text('')), whole(text(''))])).toEqual([])
  })

  test('[MP7] parallel branches stream into separate parts', () => {
    const chunks = translate([
      of('one', 'a', true),
      of('two', 'x', true),
      of('one', 'b', true),
      of('two', 'y', true),
      of('one', 'ab', false),
      of('two', 'xy', false),
    ])
    expect(prose(chunks, 'text')).toBe('axby')
    const agents = chunks.flatMap((chunk) => (chunk.type === 'data-agent' ? [chunk.data.name] : []))
    expect(agents).toEqual(['two', 'one', 'two', 'one', 'two'])
  })

  test('[MP9] the transcript of the model becomes text once, that of the user stays transient', () => {
    const chunks = translate([
      event({
        author: 'user',
        partial: true,
        inputTranscription: { text: 'Good ', finished: false },
      }),
      event({ partial: true, outputTranscription: { text: 'Hel', finished: false } }),
      event({ partial: true, outputTranscription: { text: 'lo', finished: false } }),
      event({ author: 'user', inputTranscription: { text: 'Good day', finished: true } }),
      event({ outputTranscription: { text: 'Hello', finished: true } }),
    ])
    expect(prose(chunks, 'text')).toBe('Hello')
    expect(chunks.filter((chunk) => chunk.type === 'data-input-transcription')).toEqual([
      {
        type: 'data-input-transcription',
        data: { text: 'Good ', finished: false },
        transient: true,
      },
      {
        type: 'data-input-transcription',
        data: { text: 'Good day', finished: true },
        transient: true,
      },
    ])
  })

  test('[CH4] text after a tool result opens a new step', () => {
    const chunks = translate([
      whole(call('c1')),
      whole(response('c1', { ok: 1 })),
      partial(text('Done')),
    ])
    expect(lines(chunks).slice(3)).toEqual([
      'tool-output-available c1 {"ok":1}',
      'finish-step',
      'start-step',
      'text-start text-1',
      'text-delta text-1 "Done"',
    ])
  })
})
