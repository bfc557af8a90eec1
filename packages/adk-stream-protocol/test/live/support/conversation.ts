import type { Office } from '../../approvals/support/office.ts'

/** The stored conversation as lines of role and text. */
export async function textParts(office: Office, id = 'chat-1'): Promise<[string, string][]> {
  const messages = await office.page().messages(id)
  return messages.map(({ role, parts }) => [
    role,
    parts.map((part) => (part.type === 'text' ? String(part['text']) : '')).join(''),
  ])
}
