import { describe, expect, test } from 'vitest'

import {
  call,
  event,
  lines,
  response,
  translate,
  translateTurn,
  whole,
} from './support/translate-events.ts'

const withMetadata = (params: Parameters<typeof event>[0]) => translate([event(params)])

describe('tools', () => {
  test('[MP3] a call and its response are one part', () => {
    const chunks = translate([
      whole(call('c1', 'look', { at: '空' })),
      whole(response('c1', { seen: true })),
    ])
    expect(lines(chunks)).toEqual([
      'start-step',
      'tool-input-start c1 "look"',
      'tool-input-available c1 "look" {"at":"空"}',
      'tool-output-available c1 {"seen":true}',
    ])
  })

  test('[MP3] parallel calls share a step', () => {
    const chunks = translate([whole(call('c1'), call('c2')), whole(response('c1'), response('c2'))])
    expect(lines(chunks).filter((line) => line === 'start-step')).toHaveLength(1)
  })

  test('[MP3] a partial call is not sent before it is complete', () => {
    expect(translate([event({ partial: true, content: { parts: [call('c1')] } })])).toEqual([])
  })

  test('[CH5] a repeated call is shown once, and a second result is dropped', () => {
    const chunks = translate([
      whole(call('c1')),
      whole(call('c1')),
      whole(response('c1', { n: 1 })),
      whole(response('c1', { n: 2 })),
    ])
    expect(lines(chunks).filter((line) => line.startsWith('tool-'))).toEqual([
      'tool-input-start c1 "look"',
      'tool-input-available c1 "look" {}',
      'tool-output-available c1 {"n":1}',
    ])
  })

  test('[CH5] a result of a long-running call is marked as preliminary, unless it comes from outside', () => {
    const asked = event({ content: { parts: [call('c1')] }, longRunningToolIds: ['c1'] })
    const settle = (author: string): string[] => {
      const content = { parts: [response('c1', { ticket: 1 })] }
      return lines(translate([asked, event({ author, content })])).filter((line) =>
        /^data-preliminary|^tool-output/.test(line),
      )
    }
    const result = 'tool-output-available c1 {"ticket":1}'
    expect(settle('assistant')).toEqual(['data-preliminary {"toolCallId":"c1"} true', result])
    expect(settle('user')).toEqual([result])
  })

  test('[CH5] a response to a call of another message is not sent', () => {
    expect(translate([whole(response('elsewhere'))])).toEqual([])
  })

  test.each([
    ['returned error', { error: 'No such city' }, 'tool-output-error c1 "No such city"'],
    [
      'error beside data',
      { success: false, error: 'Too much' },
      'tool-output-available c1 {"success":false,"error":"Too much"}',
    ],
    ['null error', { error: null }, 'tool-output-available c1 {"error":null}'],
  ])('[MP3] %s', (_name, result, line) => {
    expect(lines(translate([whole(call('c1')), whole(response('c1', result))])).at(-1)).toBe(line)
  })

  test('[ER3] the message of a thrown error stays on the server', () => {
    const chunks = translate([
      whole(call('c1')),
      whole(response('c1', { error: "Error in tool 'look': ENOENT /etc/secret" })),
    ])
    expect(lines(chunks).at(-1)).toBe('tool-output-error c1 "The tool look failed."')
  })

  test('[CH5] a call without a result is settled at the end', () => {
    expect(lines(translateTurn([whole(call('c1'))])).slice(3, 4)).toEqual([
      'tool-output-error c1 "The call ended without a result."',
    ])
    expect(lines(translateTurn([whole(call('c1'))], 'stopped'))[3]).toMatch(
      /may or may not have taken effect/,
    )
  })

  test('[CH8] a call that waits for a result from outside ends the turn with tool-calls', () => {
    const waiting = event({ content: { parts: [call('c1')] }, longRunningToolIds: ['c1'] })
    expect(lines(translateTurn([waiting])).slice(3)).toEqual([
      'finish-step',
      'finish "tool-calls" {}',
    ])
  })

  test('[CH4] a turn that ends with a result ends with an empty step', () => {
    const chunks = translateTurn([whole(call('c1')), whole(response('c1'))])
    expect(lines(chunks).slice(4)).toEqual([
      'finish-step',
      'start-step',
      'finish-step',
      'finish "stop" {}',
    ])
  })

  test('[AP0] a confirmation request settles its call', () => {
    const args = {
      originalFunctionCall: { id: 'c1', name: 'pay' },
      toolConfirmation: { confirmed: false },
    }
    const chunks = translate([
      whole(call('c1', 'pay')),
      whole(call('k1', 'adk_request_confirmation', args)),
    ])
    expect(lines(chunks).at(-1)).toMatch(/^tool-output-error c1 "Not run: .*approval/)
  })

  test('[AP0] a sign-in request settles its call', () => {
    const args = { function_call_id: 'c1', auth_config: {} }
    const chunks = translate([
      whole(call('c1', 'mail')),
      whole(call('k1', 'adk_request_credential', args)),
    ])
    expect(lines(chunks).at(-1)).toMatch(/^tool-output-error c1 "Not run: .*sign-in/)
  })

  test('[MP7] a transfer is sent as a transfer, not as a tool', () => {
    const transfer = call('t1', 'transfer_to_agent', { agent_name: 'cook' })
    const done = {
      content: { parts: [response('t1', {}, 'transfer_to_agent')] },
      actions: { transferToAgent: 'cook' },
    }
    const chunks = translate([
      whole(transfer),
      event(done),
      event({ author: 'cook', content: { parts: [{ text: 'Hi' }] } }),
    ])
    expect(lines(chunks)).toEqual([
      'start-step',
      'data-agent-transfer {"to":"cook"}',
      'data-agent {"name":"cook"}',
      'text-start text-1',
      'text-delta text-1 "Hi"',
      'text-end text-1',
    ])
  })
})

describe('media, code and sources', () => {
  test('[MP4] an inline image becomes a file, PCM a transient part', () => {
    const chunks = translate([
      whole({ inlineData: { mimeType: 'image/png', data: 'AAAA' } }),
      whole({ inlineData: { mimeType: 'audio/pcm;rate=16000', data: 'BBBB' } }),
    ])
    expect(chunks.slice(1)).toEqual([
      { type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,AAAA' },
      {
        type: 'data-pcm',
        data: { content: 'BBBB', sampleRate: 16_000, channels: 1, bitDepth: 16 },
        transient: true,
      },
    ])
  })

  test.each([
    ['https://files.test/a.pdf', 1],
    ['gs://bucket/a.pdf', 1],
    ['javascript:alert(1)', 0],
    ['file:///etc/passwd', 0],
  ])('[MP4] fileData at %s', (fileUri, files) => {
    const chunks = translate([whole({ fileData: { fileUri, mimeType: 'application/pdf' } })])
    expect(chunks.filter((chunk) => chunk.type === 'file')).toHaveLength(files)
  })

  test('[MP5] code and its result', () => {
    const chunks = translate([
      whole({ executableCode: { code: 'print(1)' } }, { codeExecutionResult: { output: '1\n' } }),
    ])
    expect(lines(chunks).slice(1)).toEqual([
      'data-executable-code {"language":"LANGUAGE_UNSPECIFIED","code":"print(1)"}',
      'data-code-execution-result {"outcome":"OUTCOME_UNSPECIFIED","output":"1\\n"}',
    ])
  })

  test('[MP6] every source is sent once, and unsafe URLs are not links', () => {
    const groundingChunks = [
      { web: { uri: 'https://a.test/', title: 'A' } },
      { web: { uri: 'javascript:alert(1)', title: 'Trap' } },
      { retrievedContext: { title: 'Handbook' } },
      { image: { sourceUri: 'https://c.test/', title: 'C' } },
    ]
    const groundingSupports = [
      { segment: { text: 'so', startIndex: 1, endIndex: 3 }, groundingChunkIndices: [0, 2] },
    ]
    const grounded = event({
      groundingMetadata: { groundingChunks, groundingSupports, webSearchQueries: ['a?'] },
    })
    const chunks = translate([grounded, grounded])
    expect(chunks.slice(1, 5)).toEqual([
      { type: 'source-url', sourceId: 'source-1', url: 'https://a.test/', title: 'A' },
      { type: 'source-document', sourceId: 'source-2', mediaType: 'text/plain', title: 'Trap' },
      { type: 'source-document', sourceId: 'source-3', mediaType: 'text/plain', title: 'Handbook' },
      { type: 'source-url', sourceId: 'source-4', url: 'https://c.test/', title: 'C' },
    ])
    const supports = [
      { text: 'so', startIndex: 1, endIndex: 3, sourceIds: ['source-1', 'source-3'] },
    ]
    const grounding = {
      type: 'data-grounding',
      id: 'grounding',
      data: { queries: ['a?'], supports },
    }
    expect(chunks.slice(5)).toEqual([grounding, grounding])
  })

  test('[MP6] citations are sources and metadata', () => {
    const cited = event({
      citationMetadata: {
        citations: [{ uri: 'https://a.test/', startIndex: 0, endIndex: 4, license: 'MIT' }],
      },
    })
    const chunks = translateTurn([cited])
    expect(chunks[1]).toEqual({ type: 'source-url', sourceId: 'source-1', url: 'https://a.test/' })
    expect(chunks.at(-1)).toMatchObject({
      messageMetadata: {
        citations: [{ uri: 'https://a.test/', startIndex: 0, endIndex: 4, license: 'MIT' }],
      },
    })
  })
})

describe('actions', () => {
  test('[MP8] state, artifacts and outputs', () => {
    const actions = { stateDelta: { step: 2, secret: 1 }, artifactDelta: { 'a.txt': 3 } }
    const chunks = translate(
      [event({ actions }), event({ output: { total: 4 } })],
      (key) => key !== 'secret',
    )
    expect(lines(chunks)).toEqual([
      'start-step',
      'data-state-delta {"delta":{"step":2}}',
      'data-artifact-delta {"artifacts":{"a.txt":3}}',
      'data-output {"value":{"total":4}}',
    ])
  })

  test('[MP8] the actions of partial events are not sent, because they are repeated', () => {
    expect(withMetadata({ partial: true, actions: { stateDelta: { step: 2 } } })).toEqual([])
  })
})
