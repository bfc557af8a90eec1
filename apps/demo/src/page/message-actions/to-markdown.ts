import { isTextUIPart, type UIMessage } from 'ai'

/** What a message says, as it was written; thoughts, calls and pictures are left out. */
export function toMarkdown({ parts }: Pick<UIMessage, 'parts'>): string {
  return parts
    .filter(isTextUIPart)
    .map(({ text }) => text.trim())
    .filter((text) => text !== '')
    .join('\n\n')
}
