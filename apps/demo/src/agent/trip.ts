import { type BaseAgent, type BaseLlm, FunctionTool, LlmAgent, SequentialAgent } from '@google/adk'
import { z } from 'zod'

/**
 * An agent that works in steps: it plans a weekend, books it, and confirms it. The second step waits for an approval. The assistant
 * transfers to it.
 */
export function createTrip(model: BaseLlm, languageOf: (userId: string) => string): BaseAgent {
  // The steps follow each other, so none of them transfers to another agent.
  const step = { model, disallowTransferToParent: true, disallowTransferToPeers: true }
  // oxlint-disable-next-line typescript/no-deprecated -- Deprecated in favour of Workflow, which cannot be a sub-agent.
  return new SequentialAgent({
    name: 'weekend_trip',
    description: 'Plans a weekend in a city, books it and confirms it.',
    subAgents: [
      new LlmAgent({
        ...step,
        name: 'plan',
        instruction: `You do the step "plan" of a trip. Plan a weekend in the city that the user named, in two sentences. ${STYLE}`,
      }),
      new LlmAgent({
        ...step,
        name: 'book',
        instruction: `You do the step "book" of a trip. Book the planned weekend with book_trip: it is approved before it runs, so do not ask for permission. Then report in one sentence. ${STYLE}`,
        tools: [createBookTrip(languageOf)],
      }),
      new LlmAgent({
        ...step,
        name: 'confirm',
        instruction: `You do the step "confirm" of a trip. Sum up in one sentence what was planned and whether it was booked. ${STYLE}`,
      }),
    ],
  })
}

const STYLE = 'Answer in the language of the user.'

/**
 * Books a trip. It requests its confirmation itself: the bridge rejects an agent with `live` in which a tool with `requireConfirmation`
 * is a step before the last one, because a live session cannot wait there. In a live session this call is refused.
 */
function createBookTrip(languageOf: (userId: string) => string): FunctionTool {
  return new FunctionTool({
    name: 'book_trip',
    description: 'Books a hotel for a weekend.',
    parameters: z.object({
      place: z.string().min(1).max(200).describe('The city.'),
      nights: z.int().min(1).max(7).describe('The number of nights.'),
      price: z.number().positive().max(2000).describe('The price in dollars.'),
    }),
    execute: ({ place, nights, price }, context) => {
      if (!context) return { booked: false, error: 'A booking needs a user.' }
      const { toolConfirmation, userId } = context
      if (!toolConfirmation) {
        context.requestConfirmation({ hint: languageOf(userId) === 'ja' ? HINTS.ja : HINTS.en })
        return { status: 'waiting for an approval' }
      }
      return toolConfirmation.confirmed
        ? { booked: true, place, nights, price, note: 'Sample booking.' }
        : { booked: false, status: 'denied' }
    },
  })
}

const HINTS = {
  en: 'The next step starts after your decision. The demo books no real hotel.',
  ja: '決定すると次の手順に進みます。実際のホテルは予約されません。',
}
