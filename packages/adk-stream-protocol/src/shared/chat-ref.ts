/** Names a chat of one bridge. Chats of two principals may have the same id. */
export interface ChatRef {
  readonly principalId: string
  readonly chatId: string
}

/** Names a chat in a store, which several apps may share. */
export interface AppChatRef extends ChatRef {
  readonly appName: string
}
