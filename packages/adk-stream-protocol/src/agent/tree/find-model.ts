import type { BaseAgent } from '@google/adk'
import { LLMRegistry, isBaseLlm, isLlmAgent } from '@google/adk'

/** Returns the name of an agent's model, its own or that of the nearest agent above it, and adds a problem if ADK has none. */
export function findModel(agent: BaseAgent, problems: string[]): string | undefined {
  if (!isLlmAgent(agent)) return undefined
  for (let each: BaseAgent | undefined = agent; each; each = each.parentAgent) {
    if (!isLlmAgent(each) || !each.model) continue
    if (isBaseLlm(each.model)) return each.model.model
    if (each === agent && !isKnownModel(each.model))
      problems.push(`The agent ${agent.name} has the model ${each.model}, which ADK does not know.`)
    return each.model
  }
  problems.push(`The agent ${agent.name} has no model. Set \`model\` of it or of its parent.`)
  return undefined
}

function isKnownModel(model: string): boolean {
  try {
    LLMRegistry.resolve(model)
    return true
  } catch {
    return false
  }
}
