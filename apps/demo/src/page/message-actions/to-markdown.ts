import { isTextUIPart, type UIMessage } from 'ai'

/** Returns the text of a message as Markdown, without reasoning, calls and pictures. */
export function toMarkdown({ parts }: Pick<UIMessage, 'parts'>): string {
  return parts
    .filter(isTextUIPart)
    .map(({ text }) => text.trim())
    .filter((text) => text !== '')
    .join('\n\n')
}
