import type { FinishReason } from '@google/genai'
import { describe, expect, test } from 'vitest'

import { readReplyEnd, describeModelError } from '../../src/agent/translate/model-outcome.ts'
import {
  call,
  event,
  lines,
  partial,
  response,
  translateTurn,
  whole,
} from './support/translate-events.ts'

const usage = (promptTokenCount: number, candidatesTokenCount: number, more = {}) => ({
  usageMetadata: {
    promptTokenCount,
    candidatesTokenCount,
    totalTokenCount: promptTokenCount + candidatesTokenCount,
    ...more,
  },
})
const last = (events: Parameters<typeof translateTurn>[0]) => translateTurn(events).at(-1)

const endAfterResults = (reason: string) =>
  last([
    whole({ text: 'Let me look.' }, call('c1')),
    whole(response('c1')),
    event({
      finishReason: reason as FinishReason,
      ...(reason !== 'STOP' && { errorCode: reason }),
    }),
  ])

describe('usage', () => {
  test('[CH7] the last usage report of a call counts, and calls are added up', () => {
    const finish = last([
      event({ partial: true, content: { parts: [{ text: 'a' }] }, ...usage(10, 1) }),
      event({ content: { parts: [{ text: 'ab' }] }, ...usage(10, 2) }),
      event({ content: { parts: [call('c1')] }, ...usage(10, 5) }),
      whole(response('c1')),
      // ADK reports the first call again after the tool's result.
      event(usage(10, 5)),
      event({ partial: true, content: { parts: [{ text: 'c' }] }, ...usage(20, 1) }),
      event({ content: { parts: [{ text: 'c' }] }, ...usage(20, 3) }),
    ])
    expect(finish).toMatchObject({
      messageMetadata: { usage: { inputTokens: 30, outputTokens: 8, totalTokens: 38 } },
    })
  })

  test('[CH7] reasoning, cached and tool tokens are counted separately', () => {
    const report = usage(10, 4, {
      thoughtsTokenCount: 6,
      cachedContentTokenCount: 8,
      toolUsePromptTokenCount: 5,
      totalTokenCount: 25,
    })
    expect(last([event({ content: { parts: [{ text: 'hi' }] }, ...report })])).toMatchObject({
      messageMetadata: {
        usage: {
          inputTokens: 15,
          outputTokens: 10,
          totalTokens: 25,
          reasoningTokens: 6,
          cachedInputTokens: 8,
        },
      },
    })
  })

  test('[CH7] without a report there is no usage', () => {
    expect(last([whole({ text: 'hi' })])).toEqual({
      type: 'finish',
      finishReason: 'stop',
      messageMetadata: {},
    })
  })
})

describe('the end of a turn', () => {
  test('[CH2] the last chunk is finish, with the model version', () => {
    expect(
      last([event({ content: { parts: [{ text: 'hi' }] }, modelVersion: 'gemini-x' })]),
    ).toEqual({
      type: 'finish',
      finishReason: 'stop',
      messageMetadata: { modelVersion: 'gemini-x' },
    })
  })

  test('[CH2] a stopped turn closes its text and is marked as stopped', () => {
    expect(lines(translateTurn([partial({ text: 'Hel' })], 'stopped')).slice(3)).toEqual([
      'text-end text-1',
      'finish-step',
      'abort',
      'finish "stop" {"stopped":true}',
    ])
  })

  test('[ER2] an error is sent once, after its metadata, and ends the turn', () => {
    const failed = event({ errorCode: '429', errorMessage: 'Quota. Please retry in 12.5s.' })
    expect(
      translateTurn([partial({ text: 'Hel' }), failed, failed, whole({ text: 'later' })]).slice(3),
    ).toEqual([
      { type: 'text-end', id: 'text-1' },
      { type: 'finish-step' },
      {
        type: 'message-metadata',
        messageMetadata: {
          error: {
            code: 'model-rate-limited',
            message: 'The model is receiving too many requests. Try again later.',
            retryAfterSeconds: 13,
          },
        },
      },
      { type: 'error', errorText: 'The model is receiving too many requests. Try again later.' },
    ])
  })

  test.each([
    ['MAX_TOKENS', 'length'],
    ['SAFETY', 'content-filter'],
  ] as const)('[MP11] a reply cut off by %s keeps its text', (errorCode, finishReason) => {
    const cut = event({
      content: { parts: [{ text: 'So far' }] },
      errorCode,
      finishReason: errorCode as FinishReason,
    })
    const expected = translateTurn([cut])
    expect(lines(expected)).toContain('text-delta text-1 "So far"')
    expect(expected.at(-1)).toMatchObject({ type: 'finish', finishReason })
  })

  test('[MP11] a blocked reply without text is an error', () => {
    expect(translateTurn([event({ errorCode: 'SAFETY' })]).at(-1)).toMatchObject({
      type: 'error',
      errorText: 'The model declined to answer this.',
    })
  })

  test.each([
    ['STOP', 'stop', 'model-mistake'],
    ['MAX_TOKENS', 'length', undefined],
    ['NEED_MORE_INPUT', 'stop', undefined],
    ['SPII', 'content-filter', 'model-blocked'],
    ['MODEL_ARMOR', 'content-filter', 'model-blocked'],
    ['RESPONSE_REJECTED', 'content-filter', 'model-blocked'],
    ['MALFORMED_FUNCTION_CALL', 'error', 'model-mistake'],
    ['UNEXPECTED_TOOL_CALL', 'error', 'model-mistake'],
    ['TOO_MANY_TOOL_CALLS', 'error', 'model-mistake'],
    ['NO_IMAGE', 'error', 'model-mistake'],
    ['MALFORMED_RESPONSE', 'error', 'model-mistake'],
    ['MISSING_THOUGHT_SIGNATURE', 'error', 'model-mistake'],
    ['OTHER', 'other', 'model-mistake'],
    ['A_REASON_OF_NEXT_YEAR', 'other', 'model-mistake'],
    ['__proto__', 'other', 'model-mistake'],
  ])('[CH8] finish reason %s', (reason, finishReason, ifSilent) => {
    expect(readReplyEnd(reason)).toEqual({ finishReason, ifSilent })
    const ended = { finishReason: reason as FinishReason }
    const cut = reason === 'STOP' ? ended : { ...ended, errorCode: reason }
    // As ADK reports it: after the text, and again with the whole text.
    const spoken = translateTurn([partial({ text: 'So far' }), event(cut)])
    const isComplete = finishReason === 'stop'
    expect(spoken.at(-1)).toEqual({
      type: 'finish',
      finishReason,
      messageMetadata: isComplete ? {} : { finishReason },
    })
    const silent = translateTurn([partial({ text: 'Hm', thought: true }), event(cut)])
    expect(silent.at(-1)?.type).toBe(ifSilent ? 'error' : 'finish')
    const [failed] = silent.flatMap((chunk) =>
      chunk.type === 'message-metadata' ? chunk.messageMetadata : [],
    )
    expect(failed?.error?.code).toBe(ifSilent)
  })

  test('[MP11] a mistake after the results of calls is an error, and an empty reply to them is not', () => {
    expect(endAfterResults('MALFORMED_FUNCTION_CALL')).toMatchObject({ type: 'error' })
    expect(endAfterResults('STOP')).toMatchObject({ type: 'finish', finishReason: 'stop' })
  })

  test('[MP1080] a message that was cut off and has continued says that it is complete', () => {
    expect(
      last([
        event({
          content: { parts: [{ text: 'So far' }, call('c1')] },
          finishReason: 'MAX_TOKENS' as FinishReason,
        }),
        whole(response('c1')),
        event({
          content: { parts: [{ text: 'Done.' }] },
          finishReason: 'STOP' as FinishReason,
        }),
      ]),
    ).toMatchObject({ finishReason: 'stop', messageMetadata: { finishReason: 'stop' } })
  })
})

test('[ER2] a call with usage but without content and finish reason is a blocked prompt', () => {
  expect(last([event(usage(10, 0))])).toEqual({
    type: 'error',
    errorText: 'The model declined to answer this.',
  })
})

describe('errors of the model', () => {
  test.each([
    ['429', '', 'model-rate-limited'],
    ['500', '', 'model-unavailable'],
    ['503', '', 'model-overloaded'],
    ['400', '', 'model-refused'],
    ['400', 'API key not valid. Please pass a valid API key.', 'model-access-denied'],
    ['401', '', 'model-access-denied'],
    ['403', '', 'model-access-denied'],
    ['404', 'models/gemini-0 is not found for API version v1beta', 'model-access-denied'],
    ['PROHIBITED_CONTENT', '', 'model-blocked'],
    ['UNKNOWN_ERROR', 'terminated', 'model-interrupted'],
    ['UNKNOWN_ERROR', 'exception TypeError: fetch failed sending request', 'model-unavailable'],
    ['UNKNOWN_ERROR', 'Function nosuch is not found in the toolsDict.', 'unknown-tool'],
    [
      'UNKNOWN_ERROR',
      'got status: UNAVAILABLE. {"error":{"code":503,"message":"x"}}',
      'model-overloaded',
    ],
    ['UNKNOWN_ERROR', 'Max number of llm calls limit of 3 exceeded', 'model-call-limit'],
    [
      'UNKNOWN_ERROR',
      'exception AbortError: This operation was aborted sending request',
      'model-unavailable',
    ],
    ['UNKNOWN_ERROR', 'something else', 'internal'],
  ])('[ER2] %s %s', (errorCode, errorMessage, code) => {
    expect(describeModelError(errorCode, errorMessage).code).toBe(code)
  })

  test('[ER2] the retry delay is read from an error inside a stream', () => {
    const message =
      'got status: RESOURCE_EXHAUSTED. {"error":{"code":429,"details":[{"retryDelay":"7s"}]}}'
    expect(describeModelError('UNKNOWN_ERROR', message)).toMatchObject({ retryAfterSeconds: 7 })
  })
})
