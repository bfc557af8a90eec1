import type { LlmAgent, LlmResponse, PluginManager } from '@google/adk'

/** The name of a call for which the model gave none. No tool has it. */
const UNNAMED = 'unnamed'

/**
 * Gives each call of a response of the model an id of its own, and a name. ADK 2.0.0 runs two calls with the same id, of which clients
 * and the ledger know one. Gemini refuses a history with a call that has no response or no name. Refuses calls whose arguments are
 * streamed in parts. Must be called last.
 */
export function repairModelCalls(manager: PluginManager): void {
  const next = manager.runAfterModelCallback.bind(manager)
  manager.runAfterModelCallback = (params) => {
    repairCalls(params.llmResponse)
    return next(params)
  }
}

/** Whether the model of an agent may stream the arguments of a call in parts. ADK 2.0.0 runs the tool with the first part. */
export function streamsArguments({ generateContentConfig }: LlmAgent): boolean {
  const { functionCallingConfig } = generateContentConfig?.toolConfig ?? {}
  return functionCallingConfig?.streamFunctionCallArguments === true
}

/** Changes the response in place. The ids are the same for a partial response and the whole one. */
function repairCalls({ content }: LlmResponse): void {
  // Most responses are a piece of text.
  let used: Set<string> | undefined
  for (const { functionCall } of content?.parts ?? []) {
    if (!functionCall) continue
    if (functionCall.partialArgs || functionCall.willContinue)
      throw new Error(
        'The model streams the arguments of a call in parts, which ADK cannot read. The call did not run. Do not set `streamFunctionCallArguments` in a request.',
      )
    used ??= new Set()
    functionCall.name ||= UNNAMED
    const { id } = functionCall
    // ADK creates the ids of calls without one.
    if (!id) continue
    let own = id
    for (let copy = 2; used.has(own); copy += 1) own = `${id}-${copy}`
    functionCall.id = own
    used.add(own)
  }
}
