import type { TestBridge } from '../../approvals/support/test-bridge.ts'

/** The stored conversation as lines of role and text. */
export async function textParts(
  testBridge: TestBridge,
  id = 'chat-1',
): Promise<[string, string][]> {
  const messages = await testBridge.page().messages(id)
  return messages.map(({ role, parts }) => [
    role,
    parts.map((part) => (part.type === 'text' ? String(part['text']) : '')).join(''),
  ])
}
