import { AgentTool, type BaseLlm, type BaseTool, LlmAgent } from '@google/adk'
import type { Action, Prompt, Responder } from 'gemini-emulator'

/** What each agent does, by its name: a list of actions for each time its model is called for a request. */
export type Plays = Readonly<Record<string, readonly (readonly Action[])[]>>

/** A model that plays several agents. An agent names itself in its instruction. */
export function play(plays: Plays): Responder {
  return (prompt) => {
    const name = agentOf(prompt)
    const said = prompt.contents.slice(lastRequest(prompt)).filter(({ role }) => role === 'model')
    return [
      ...(plays[name]?.[said.length] ?? [{ type: 'say', text: `${name} has nothing to do.` }]),
    ]
  }
}

/** The agent whose model is called. */
export function agentOf({ systemInstruction }: Prompt): string {
  return /I am the (\w+)\./.exec(systemInstruction)?.[1] ?? ''
}

function lastRequest({ contents }: Prompt): number {
  return contents.findLastIndex(
    ({ role, parts = [] }) => role === 'user' && parts.some(({ text }) => text !== undefined),
  )
}

interface NestingOptions {
  /** The agents from the root to the innermost, which has the tools. Default: planner and travel. */
  readonly names?: readonly string[]
  /** Tools of the root agent. */
  readonly outer?: readonly BaseTool[]
}

/** Agents that use each other as tools: each one is the tool of the one before it. */
export function nest(
  model: BaseLlm,
  tools: readonly BaseTool[],
  { names = ['planner', 'travel'], outer = [] }: NestingOptions = {},
): LlmAgent {
  const [name = '', ...rest] = names
  const inner =
    rest.length > 0 ? [new AgentTool({ agent: nest(model, tools, { names: rest }) })] : tools
  return new LlmAgent({
    name,
    model,
    description: `The agent ${name}.`,
    instruction: `I am the ${name}.`,
    tools: [...inner, ...outer],
  })
}

export const say = (text: string): Action => ({ type: 'say', text })
export const ask = (name: string, request = 'Go.'): Action => ({
  type: 'call',
  name,
  args: { request },
})
export const pay = (amount: number, recipient = 'A'): Action => ({
  type: 'call',
  name: 'process_payment',
  args: { amount, recipient },
})
