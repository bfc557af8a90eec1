/** The agent that new chats get, where the bridge has several: one for all of them, or one for each. */
export type AgentOption = string | ((chatId: string) => string | undefined)

/** The field of a body or a frame that names the agent of a chat. Empty where no agent is named. */
export function nameAgent(option: AgentOption | undefined, chatId: string): { agent?: string } {
  const agent = typeof option === 'function' ? option(chatId) : option
  return agent === undefined ? {} : { agent }
}
