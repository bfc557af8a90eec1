import { z } from 'zod'

import type { TestDemo } from './test-demo.ts'

const FunctionResponse = z.object({
  response: z.record(z.string(), z.unknown()),
  willContinue: z.boolean().optional(),
})
const Request = z.object({
  contents: z.array(
    z.object({
      parts: z.array(z.object({ functionResponse: FunctionResponse.optional() })).default([]),
    }),
  ),
})
const Frame = z.object({ toolResponse: z.object({ functionResponses: z.array(FunctionResponse) }) })

type Result = z.infer<typeof FunctionResponse>['response']

/** Returns a function that returns the tool results that the model has received since now, over HTTP or on a live session. */
export function watchToolResults({ emulator }: TestDemo): () => Result[] {
  const earlierRequests = emulator.requests.length
  const earlierLiveResults = liveResults().length

  function liveResults(): Result[] {
    return (
      emulator.live.sessions
        .flatMap(({ received }) => received)
        .flatMap((frame) => Frame.safeParse(frame).data?.toolResponse.functionResponses ?? [])
        // A partial response only says that the call is pending.
        .flatMap(({ response, willContinue }) => (willContinue ? [] : [response]))
    )
  }
  return () => {
    // Each request contains the whole conversation, so the last one has all results.
    const last = emulator.requests.slice(earlierRequests).at(-1)
    const contents = last ? Request.parse(last.body).contents : []
    const results = contents
      .flatMap(({ parts }) => parts)
      .flatMap(({ functionResponse }) => (functionResponse ? [functionResponse.response] : []))
    return [...results, ...liveResults().slice(earlierLiveResults)]
  }
}
