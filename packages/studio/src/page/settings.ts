import { useValue } from './observable-value.ts'
import { usePlugin } from './plugin/plugin-context.ts'

interface StoredChoiceOptions<Value extends string> {
  /** The key in `localStorage`. */
  readonly key: string
  readonly isValue: (stored: string) => stored is Value
  readonly fallback: Value
  /** Whether each tab has its own value. A new tab starts with the value that was chosen last. Default false. */
  readonly perTab?: boolean
}

/** A setting in `localStorage` that all tabs share, unless it belongs to a tab. */
export class StoredChoice<Value extends string> {
  readonly #options: StoredChoiceOptions<Value>
  readonly #listeners = new Set<() => void>()

  constructor(options: StoredChoiceOptions<Value>) {
    this.#options = options
  }

  readonly read = (): Value => {
    const { key, isValue, fallback, perTab } = this.#options
    const stored = (perTab && sessionStorage.getItem(key)) || localStorage.getItem(key)
    const value = stored !== null && isValue(stored) ? stored : fallback
    // From now on, the choice of another tab does not change this one.
    if (perTab) sessionStorage.setItem(key, value)
    return value
  }

  readonly choose = (value: Value): void => {
    const { key, perTab } = this.#options
    localStorage.setItem(key, value)
    if (perTab) sessionStorage.setItem(key, value)
    for (const listener of this.#listeners) listener()
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    const fromOtherTab = ({ key }: StorageEvent) => {
      // The key is null if the storage was cleared.
      if (key === this.#options.key || key === null) listener()
    }
    this.#listeners.add(listener)
    window.addEventListener('storage', fromOtherTab)
    return () => {
      this.#listeners.delete(listener)
      window.removeEventListener('storage', fromOtherTab)
    }
  }
}

/** Returns a check of stored values. */
export function isOneOf<Value extends string>(values: readonly Value[]) {
  return (stored: string): stored is Value => values.some((value) => value === stored)
}

export function useChoice<Value extends string>(
  choice: StoredChoice<Value>,
): readonly [Value, (value: Value) => void] {
  return [useValue(choice), choice.choose]
}

/** The agent over HTTP, and the agent over a WebSocket. */
export const AGENT_MODES = ['sse', 'live'] as const
export type AgentMode = (typeof AGENT_MODES)[number]

/** Each tab has its own mode: another tab must not end a voice conversation. */
const mode = new StoredChoice<string>({
  key: 'mode',
  isValue: (stored): stored is string => stored !== '',
  fallback: 'sse',
  perTab: true,
})

/** The mode of the agent, or one that the plug-in adds. */
export function useMode(): readonly [string, (mode: string) => void] {
  const { modes = [] } = usePlugin()
  const [chosen, choose] = useChoice(mode)
  const isKnown = storesChats(chosen) || modes.some(({ name }) => name === chosen)
  return [isKnown ? chosen : 'sse', choose]
}

/** Returns whether the server stores the chats of this mode. Both modes of the agent share their chats. */
export function storesChats(chosen: string): chosen is AgentMode {
  return AGENT_MODES.some((each) => each === chosen)
}

export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const theme = new StoredChoice<Theme>({
  key: 'theme',
  isValue: isOneOf(THEMES),
  fallback: 'system',
})

export function useTheme() {
  return useChoice(theme)
}

/** Applies the chosen theme. Called before the first render to avoid a flash. */
export function followTheme(): void {
  const show = () => {
    document.documentElement.dataset['theme'] = theme.read()
  }
  theme.subscribe(show)
  show()
}

const PANEL_STATES = ['open', 'closed'] as const
type PanelVisibility = (typeof PANEL_STATES)[number]

const sidebar = new StoredChoice<PanelVisibility>({
  key: 'sidebar',
  isValue: isOneOf(PANEL_STATES),
  fallback: 'open',
})
const inspector = new StoredChoice<PanelVisibility>({
  key: 'inspector',
  isValue: isOneOf(PANEL_STATES),
  fallback: 'closed',
})

/** Whether the docked panels are open. */
export function useSidebarPanel() {
  return usePanelChoice(sidebar)
}

export function useInspectorPanel() {
  return usePanelChoice(inspector)
}

function usePanelChoice(
  panel: StoredChoice<PanelVisibility>,
): readonly [boolean, (open: boolean) => void] {
  const [value, choose] = useChoice(panel)
  return [value === 'open', (open) => choose(open ? 'open' : 'closed')]
}

const OFF_OR_ON = ['off', 'on'] as const
/** `on`: while the page is hidden. `push`: also while no page is open. */
const NOTIFICATIONS = [...OFF_OR_ON, 'push'] as const
export type Notifications = (typeof NOTIFICATIONS)[number]

const notifications = new StoredChoice<Notifications>({
  key: 'notifications',
  isValue: isOneOf(NOTIFICATIONS),
  fallback: 'off',
})

/** Whether the browser shows notifications about approvals. */
export function useNotifications() {
  return useChoice(notifications)
}

/** Captions repeat the current words near the input. The conversation contains them too. */
const captions = new StoredChoice({ key: 'captions', isValue: isOneOf(OFF_OR_ON), fallback: 'off' })

export function useCaptions() {
  return useChoice(captions)
}
