/** Names a chat of one bridge. Chats of two principals may have the same id. */
export interface ChatRef {
  readonly principalId: string
  readonly chatId: string
}

/** Names a chat in a store, which several apps may share. */
export interface AppChatRef extends ChatRef {
  readonly appName: string
}

/** Whether two references name the same chat of a bridge. */
export function isSameChat(one: ChatRef, other: ChatRef): boolean {
  return one.chatId === other.chatId && one.principalId === other.principalId
}

/** Returns a string that identifies a chat, for use as a map key. */
export function toChatKey({ appName, principalId, chatId }: AppChatRef): string {
  return JSON.stringify([appName, principalId, chatId])
}
