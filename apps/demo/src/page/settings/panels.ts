import { StoredChoice, useChoice } from './stored-choice.ts'

const VALUES = ['open', 'closed'] as const
type Panel = (typeof VALUES)[number]

const sidebar = new StoredChoice<Panel>({ key: 'sidebar', values: VALUES, fallback: 'open' })
const inspector = new StoredChoice<Panel>({ key: 'inspector', values: VALUES, fallback: 'closed' })

/** Whether the docked panels are open. */
export function useSidebarPanel() {
  return usePanel(sidebar)
}

export function useInspectorPanel() {
  return usePanel(inspector)
}

function usePanel(panel: StoredChoice<Panel>): readonly [boolean, (open: boolean) => void] {
  const [value, choose] = useChoice(panel)
  return [value === 'open', (open) => choose(open ? 'open' : 'closed')]
}
