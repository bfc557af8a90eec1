import { useLanguage } from '../i18n/language.tsx'
import { en, type InspectorLabels, ja } from './labels.ts'

export function useInspectorLabels(): InspectorLabels {
  return useLanguage().language === 'ja' ? ja : en
}
