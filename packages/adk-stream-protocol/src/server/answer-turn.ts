import type { Content, FunctionResponse } from '@google/genai'

import { CONFIRMATION_CALL } from '../adk/stored-turns.ts'
import type { Translation } from '../adk/translation.ts'
import type { Approval, ApprovalChat } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import type { OutputAnswer } from '../protocol/read-answers.ts'

/**
 * What a paused turn is answered with, as ADK wants it: confirmations for what was decided, results for what ran outside. Nothing
 * while all that it waits for is still open.
 */
export async function collectAnswers(
  { calls }: Translation,
  {
    ledger,
    chat,
    outputs,
  }: { ledger: Ledger; chat: ApprovalChat; outputs: readonly OutputAnswer[] },
): Promise<Content | undefined> {
  const confirmations: FunctionResponse[] = []
  const results: FunctionResponse[] = []
  for (const [toolCallId, { toolName, state }] of calls) {
    if (state === 'asked') {
      const approval = await ledger.findByCall(chat, toolCallId)
      if (approval && isDecided(approval)) confirmations.push(toConfirmation(approval))
    }
    if (state === 'waiting') {
      const given = outputs.find((output) => output.toolCallId === toolCallId)
      if (given) results.push({ id: toolCallId, name: toolName, response: toResponse(given) })
    }
  }
  // ADK hides an event with a confirmation from the model, so results go in one of their own, and first.
  const responses = results.length > 0 ? results : confirmations
  if (responses.length === 0) return undefined
  return { role: 'user', parts: responses.map((functionResponse) => ({ functionResponse })) }
}

/** Whether a turn may go on by it: it was decided, or it ended without a decision. */
export function isDecided({ state }: Approval): boolean {
  return state.name !== 'requested' && state.name !== 'executing'
}

// The ledger decides whether the call runs; ADK only has to come by.
function toConfirmation({ id, state }: Approval): FunctionResponse {
  const confirmed = state.name === 'approved'
  return { id, name: CONFIRMATION_CALL, response: { confirmed } }
}

function toResponse({ result }: OutputAnswer): Record<string, unknown> {
  if ('errorText' in result) return { error: result.errorText }
  const { output } = result
  const isObject = typeof output === 'object' && output !== null && !Array.isArray(output)
  return isObject ? { ...output } : { result: output ?? null }
}
