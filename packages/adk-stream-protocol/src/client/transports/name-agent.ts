/**
 * The agent of new chats, if the bridge has several: one for all of them, or one for each.
 *
 * @inline
 */
export type AgentOption = string | ((chatId: string) => string | undefined)

/** Returns the field of a body or a frame that names the agent of a chat. Returns an empty object if there is none. */
export function nameAgent(option: AgentOption | undefined, chatId: string): { agent?: string } {
  const agent = typeof option === 'function' ? option(chatId) : option
  return agent === undefined ? {} : { agent }
}
