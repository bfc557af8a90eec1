import type { FinishReason } from '@google/genai'
import { describe, expect, test } from 'vitest'

import { readFinishReason, describeModelError } from '../../src/agent/translate/model-outcome.ts'
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
    ['STOP', 'stop'],
    ['SPII', 'content-filter'],
    ['MALFORMED_FUNCTION_CALL', 'error'],
    ['A_REASON_OF_NEXT_YEAR', 'other'],
    ['__proto__', 'other'],
  ])('[CH8] finish reason %s', (reason, expected) => {
    expect(readFinishReason(reason)).toBe(expected)
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
    ['503', '', 'model-unavailable'],
    ['400', '', 'model-refused'],
    ['PROHIBITED_CONTENT', '', 'model-blocked'],
    ['UNKNOWN_ERROR', 'terminated', 'model-interrupted'],
    ['UNKNOWN_ERROR', 'exception TypeError: fetch failed sending request', 'model-unavailable'],
    ['UNKNOWN_ERROR', 'Function nosuch is not found in the toolsDict.', 'unknown-tool'],
    [
      'UNKNOWN_ERROR',
      'got status: UNAVAILABLE. {"error":{"code":503,"message":"x"}}',
      'model-unavailable',
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
