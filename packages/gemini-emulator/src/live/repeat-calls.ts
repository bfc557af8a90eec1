import { isDeepStrictEqual } from 'node:util'

import type { Action } from '../responders/responder.ts'
import type { Content, FunctionCall, FunctionResponse } from '../wire/content.ts'

/** Returns the calls that the model makes again because their results are empty, at most `times` times. */
export function repeatCalls(
  history: readonly Content[],
  times: number,
): readonly Action[] | undefined {
  const parts = history.flatMap((content) => content.parts ?? [])
  const calls = parts.flatMap(({ functionCall }) => (functionCall ? [functionCall] : []))
  const responses = (history.at(-1)?.parts ?? []).flatMap(({ functionResponse }) =>
    functionResponse ? [functionResponse] : [],
  )
  const repeated = responses.filter(isEmpty).flatMap(({ id }) => {
    const call = calls.find((each) => each.id === id)
    return call && countSame(calls, call) <= times ? [call] : []
  })
  if (repeated.length === 0) return undefined
  return repeated.map(({ name, args = {} }) => ({ type: 'call', name, args }))
}

function isEmpty({ response = {}, willContinue }: FunctionResponse): boolean {
  return !willContinue && Object.values(response).every((value) => value === null || value === '')
}

function countSame(calls: readonly FunctionCall[], { name, args }: FunctionCall): number {
  return calls.filter((call) => call.name === name && isDeepStrictEqual(call.args, args)).length
}
