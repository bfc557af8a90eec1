import { z } from 'zod'

import type { TestDemo } from './test-demo.ts'

const Answer = z.object({
  response: z.record(z.string(), z.unknown()),
  willContinue: z.boolean().optional(),
})
const Request = z.object({
  contents: z.array(
    z.object({ parts: z.array(z.object({ functionResponse: Answer.optional() })).default([]) }),
  ),
})
const Frame = z.object({ toolResponse: z.object({ functionResponses: z.array(Answer) }) })

type Result = z.infer<typeof Answer>['response']

/** What the model is told from now on of the calls it made, over either of its wires: every result that it was given. */
export function listenToResults({ emulator }: TestDemo): () => Result[] {
  const requests = emulator.requests.length
  const frames = liveResults().length

  function liveResults(): Result[] {
    return (
      emulator.live.sessions
        .flatMap(({ received }) => received)
        .flatMap((frame) => Frame.safeParse(frame).data?.toolResponse.functionResponses ?? [])
        // A partial response only says that the call waits.
        .flatMap(({ response, willContinue }) => (willContinue ? [] : [response]))
    )
  }
  return () => {
    // A request tells the conversation from its begin, so the last one holds all.
    const last = emulator.requests.slice(requests).at(-1)
    const contents = last ? Request.parse(last.body).contents : []
    const told = contents
      .flatMap(({ parts }) => parts)
      .flatMap(({ functionResponse }) => (functionResponse ? [functionResponse.response] : []))
    return [...told, ...liveResults().slice(frames)]
  }
}
