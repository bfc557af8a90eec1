export { IconButton } from './icon-button.tsx'
export { type Language, useLanguage } from './i18n/language.tsx'
export { useValue } from './observable-value.ts'
export type {
  DescribedCall,
  PluginMode,
  PluginTexts,
  Start,
  StudioPlugin,
  SuggestionGroup,
} from './plugin/plugin.ts'
export { Modal } from './shell/dialogs.tsx'
export { Segmented } from './shell/mode-switch.tsx'
export { Setting } from './shell/setting.tsx'
export { useStudio } from './wire/studio-info.ts'
