import type { Context, LlmAgent, LlmResponse, PluginManager, Session } from '@google/adk'
import { getFunctionCalls } from '@google/adk'

/** The name of a call for which the model gave none. No tool has it. */
const UNNAMED = 'unnamed'

/**
 * Gives each call of the model an id of its own in its session, and a name. ADK 2.0.0 runs two calls with the same id, of which clients
 * and the ledger know one, and the response to one of them would be that of the other. Gemini refuses a history with a call that has no
 * response or no name. Refuses calls whose arguments are streamed in parts. Must be called last.
 */
export function repairModelCalls(manager: PluginManager): void {
  const next = manager.runAfterModelCallback.bind(manager)
  manager.runAfterModelCallback = (params) => {
    repairCalls(params.llmResponse, params.callbackContext)
    return next(params)
  }
}

/** Whether the model of an agent may stream the arguments of a call in parts. ADK 2.0.0 runs the tool with the first part. */
export function streamsArguments({ generateContentConfig }: LlmAgent): boolean {
  const { functionCallingConfig } = generateContentConfig?.toolConfig ?? {}
  return functionCallingConfig?.streamFunctionCallArguments === true
}

/** The ids that calls of a session have, with the agent that made them. Agents that run in parallel store their calls later. */
const owners = new WeakMap<Session, Map<string, string>>()

/** Changes the response in place. The ids are the same for a partial response, which is not stored, and the whole one. */
function repairCalls({ content }: LlmResponse, { invocationContext, agentName }: Context): void {
  const calls = (content?.parts ?? []).flatMap(({ functionCall }) => functionCall ?? [])
  // Most responses are a piece of text.
  if (calls.length === 0) return
  const { session, branch = '' } = invocationContext
  const used = new Set(session.events.flatMap(getFunctionCalls).map(({ id }) => id))
  const owned = owners.get(session) ?? new Map<string, string>()
  owners.set(session, owned)
  const owner = `${branch} ${agentName}`
  for (const call of calls) {
    if (call.partialArgs || call.willContinue)
      throw new Error(
        'The model streams the arguments of a call in parts, which ADK cannot read. The call did not run. Do not set `streamFunctionCallArguments` in a request.',
      )
    call.name ||= UNNAMED
    const { id } = call
    // ADK creates the ids of calls without one.
    if (!id) continue
    let own = id
    for (let copy = 2; used.has(own) || (owned.get(own) ?? owner) !== owner; copy += 1)
      own = `${id}-${copy}`
    call.id = own
    used.add(own)
    owned.set(own, owner)
  }
}
