/** Whether a chat is being answered, by its status in the words of the AI SDK. */
export function isBusy(status: string): boolean {
  return status === 'submitted' || status === 'streaming'
}
